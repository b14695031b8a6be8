"""The Lua scripts that make each operation of a Redis store atomic.

Every key of a store has the hash tag `{prefix}`, so that in a Cluster they share a slot and a script may touch
them all. A record is the string `<version> <value>`. A log is a hash of its entries by number, with `first` and
`last`. A family is two sorted sets of keys: one by expiry, to count, and one by name, to scan.

A write is given a random id under which its result is kept for a while: sent again after a lost connection, it
returns that result and does nothing. A write that did nothing needs no such memory: it may be tried afresh.
"""

__all__ = ["APPEND", "COUNT", "LOOK", "PUT", "READ", "SCAN", "TAKE"]

# TIME is the server's, so that nodes with different clocks agree.
_NOW = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
"""

# Drops a bounded number of keys whose time is over from a family.
_PRUNE = """
local function prune(by_expiry, by_name, most)
    local until_now = '(' .. string.format('%.0f', now)
    local over = redis.call('ZRANGEBYSCORE', by_expiry, '-inf', until_now, 'LIMIT', 0, most)
    if #over > 0 then
        redis.call('ZREM', by_expiry, unpack(over))
        redis.call('ZREM', by_name, unpack(over))
    end
end
"""

# KEYS: record, result, versions, then two for each family. ARGV: value, ttl in ms or '', if_version or '', key,
# ms to remember the result. The versions start at the clock, in µs: so they are new even to someone who
# remembers versions from before the server lost its data.
PUT = (
    _NOW
    + _PRUNE
    + """
local result = redis.call('GET', KEYS[2])
if result then return result end
local found = string.match(redis.call('GETRANGE', KEYS[1], 0, 19), '^%d+') or '0'
if ARGV[3] ~= '' and ARGV[3] ~= found then return false end
redis.call('SET', KEYS[3], time[1] .. string.format('%06d', time[2]), 'NX')
redis.call('INCR', KEYS[3])
local version = redis.call('GET', KEYS[3])
redis.call('SET', KEYS[1], version .. ' ' .. ARGV[1])
local expires = '+inf'
if ARGV[2] ~= '' then
    expires = string.format('%.0f', now + ARGV[2])
    redis.call('PEXPIREAT', KEYS[1], expires)
end
redis.call('SET', KEYS[2], version, 'PX', ARGV[5])
for i = 4, #KEYS, 2 do
    redis.call('ZADD', KEYS[i], expires, ARGV[4])
    redis.call('ZADD', KEYS[i + 1], 0, ARGV[4])
    prune(KEYS[i], KEYS[i + 1], 8)
end
return version
"""
)

# KEYS: record, result, then two for each family. ARGV: key, ms to remember the result.
TAKE = """
if redis.call('EXISTS', KEYS[2]) == 0 then
    if redis.call('EXISTS', KEYS[1]) == 0 then return false end
    redis.call('RENAME', KEYS[1], KEYS[2])
    redis.call('PEXPIRE', KEYS[2], ARGV[2])
    for i = 3, #KEYS do redis.call('ZREM', KEYS[i], ARGV[1]) end
end
return redis.call('GET', KEYS[2])
"""

# KEYS: log, result. ARGV: value, ttl in ms, most entries, channel, name, ms to remember the result.
# A new log's numbers start at the clock, in ms: nobody's position in a log that is over is mistaken for one in it.
APPEND = (
    _NOW
    + """
local result = redis.call('GET', KEYS[2])
if result then return tonumber(result) end
if redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('HSET', KEYS[1], 'last', string.format('%.0f', now))
end
local last = redis.call('HINCRBY', KEYS[1], 'last', 1)
redis.call('HSET', KEYS[1], last, ARGV[1])
local first = tonumber(redis.call('HGET', KEYS[1], 'first') or last)
local kept_from = last - ARGV[3] + 1
for seq = first, kept_from - 1 do redis.call('HDEL', KEYS[1], seq) end
redis.call('HSET', KEYS[1], 'first', math.max(first, kept_from))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('SET', KEYS[2], last, 'PX', ARGV[6])
redis.call('PUBLISH', ARGV[4], ARGV[5])
return last
"""
)

# KEYS: log. ARGV: after, limit. Returns the first and last numbers left, the first one returned, and the values.
READ = """
local ends = redis.call('HMGET', KEYS[1], 'first', 'last')
if not ends[1] then return {1, 0, 1} end
local from = math.max(ends[1], ARGV[1] + 1)
local page = {tonumber(ends[1]), tonumber(ends[2]), from}
for seq = from, math.min(ends[2], from + ARGV[2] - 1) do
    page[#page + 1] = redis.call('HGET', KEYS[1], seq)
end
return page
"""

# KEYS: logs. Returns the newest number of each.
LOOK = """
local newest = {}
for i, log in ipairs(KEYS) do newest[i] = tonumber(redis.call('HGET', log, 'last') or 0) end
return newest
"""

# KEYS: the family by expiry, by name.
COUNT = (
    _NOW
    + _PRUNE
    + """
prune(KEYS[1], KEYS[2], 1000)
return redis.call('ZCOUNT', KEYS[1], string.format('%.0f', now), '+inf')
"""
)

# KEYS: the family by expiry, by name. ARGV: after, limit. Looks past what is over and not yet pruned.
SCAN = (
    _NOW
    + _PRUNE
    + """
prune(KEYS[1], KEYS[2], 1000)
local keys, after, limit = {}, ARGV[1], tonumber(ARGV[2])
repeat
    local page = redis.call('ZRANGEBYLEX', KEYS[2], '(' .. after, '+', 'LIMIT', 0, limit)
    for _, key in ipairs(page) do
        local expires = tonumber(redis.call('ZSCORE', KEYS[1], key) or 0)
        if expires >= now and #keys < limit then keys[#keys + 1] = key end
        after = key
    end
until #page < limit or #keys == limit
return keys
"""
)
