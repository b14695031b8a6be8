"""The Lua scripts that make each operation of a Redis store atomic.

All keys that one script touches have the same hash tag, so that in a Cluster they share a slot. A record is the
string `<version> <value>`. A log is a stream, whose ids are `<number>-0`. A family is two sorted sets of keys: one by
expiry, to count, and one by name, to scan.

A write is given a random id under which its result is kept for a while: sent again after a lost connection, it
returns that result and does nothing. A write that did nothing needs no such memory: it may be tried afresh.
"""

__all__ = ["APPEND", "COUNT", "LOOK", "PUT", "READ", "SCAN", "TAKE"]

# TIME is the server's, so that nodes with different clocks agree.
_NOW = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
"""

# The number of the newest entry of a log, or nil.
_NEWEST = """
local function number(entries) return tonumber(string.match(entries[1][1], '^%d+')) end
local function newest(log)
    local entries = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)
    return #entries > 0 and number(entries) or nil
end
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
# ms to remember the result. A version is not below the clock, in µs: so it is new even to someone who remembers
# versions from before the server lost some or all of its data, as in a failover.
PUT = (
    _NOW
    + _PRUNE
    + """
local result = redis.call('GET', KEYS[2])
if result then return result end
local found = string.match(redis.call('GETRANGE', KEYS[1], 0, 19), '^%d+') or '0'
if ARGV[3] ~= '' and ARGV[3] ~= found then return false end
local newest = math.max((redis.call('GET', KEYS[3]) or 0) + 1, time[1] * 1000000 + time[2])
local version = string.format('%.0f', newest)
redis.call('SET', KEYS[3], version)
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
    + _NEWEST
    + """
local result = redis.call('GET', KEYS[2])
if result then return tonumber(result) end
local seq = string.format('%.0f', (newest(KEYS[1]) or now) + 1)
redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[3], seq .. '-0', 'v', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('SET', KEYS[2], seq, 'PX', ARGV[6])
redis.call('PUBLISH', ARGV[4], ARGV[5])
return tonumber(seq)
"""
)

# KEYS: log. ARGV: after, limit. Returns the first and last numbers left, then each entry's number and value.
READ = (
    _NEWEST
    + """
local last = newest(KEYS[1])
if not last then return {1, 0} end
local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)
local page = {number(first), last}
local after = string.format('%.0f', ARGV[1] + 1)
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], after, '+', 'COUNT', ARGV[2])) do
    page[#page + 1] = number({entry})
    page[#page + 1] = entry[2][2]
end
return page
"""
)

# KEYS: logs. Returns the newest number of each.
LOOK = (
    _NEWEST
    + """
local found = {}
for i, log in ipairs(KEYS) do found[i] = newest(log) or 0 end
return found
"""
)

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
