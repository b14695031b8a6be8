// Keeps the numbers fresh. Without it, or while something is being read or filled in, the page stays as it is.
const SECONDS = 5
const live = document.getElementById("live")
const pulse = document.getElementById("pulse")

const isInUse = () => live.querySelector("details[open]") !== null || live.contains(document.activeElement)

const refresh = async () => {
  if (document.visibilityState !== "visible" || isInUse()) return
  try {
    const reply = await fetch(location.pathname + location.search, { headers: { "x-live": "1" } })
    if (reply.status === 401) return location.reload()
    if (!reply.ok) throw new Error(reply.status)
    const text = await reply.text()
    if (!isInUse()) live.innerHTML = text
    pulse.textContent = `Live from the store, all nodes · ${new Date().toLocaleTimeString()}`
    pulse.classList.remove("away")
  } catch {
    pulse.textContent = "The server does not answer; trying again"
    pulse.classList.add("away")
  }
}

// What was done is said once: loading the page again does not say it once more.
if (new URLSearchParams(location.search).has("done")) {
  const rest = new URLSearchParams(location.search)
  rest.delete("done")
  history.replaceState(null, "", location.pathname + (rest.size ? `?${rest}` : ""))
}
setInterval(refresh, SECONDS * 1000)
document.addEventListener("visibilitychange", refresh)
