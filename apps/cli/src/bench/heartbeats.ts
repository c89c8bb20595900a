import type { RawSession } from './raw-session.ts'

/** Milliseconds between two checks for due heartbeats. */
const TICK_MS = 10

/**
 * Pings each session once in an interval, evenly spread over it, as those of clients that connected at different times are. Returns a
 * function that ends it. The pings of 10,000 sessions at one moment would take the server 150 ms, which a measurement of something
 * else would show.
 */
export function pingInTurns(sessions: readonly RawSession[], intervalMs: number): () => void {
  const began = performance.now()
  let pinged = 0
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - began) / intervalMs) * sessions.length)
    // After a long pause each session needs one ping, not all of those that it has missed.
    for (pinged = Math.max(pinged, due - sessions.length); pinged < due; pinged++) {
      const session = sessions[pinged % sessions.length]!
      session.ping()
      session.flush()
    }
  }, TICK_MS)
  return () => clearInterval(timer)
}
