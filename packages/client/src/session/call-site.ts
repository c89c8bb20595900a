import type { CallSite } from './pending-request.ts'

/** Captures the stack of the current call. The text is formatted only when read. */
export function captureCallSite(): CallSite {
  const site: CallSite = {}
  // Not every platform has it; without it, this function is the top frame of the stack.
  if (typeof Error.captureStackTrace === 'function') Error.captureStackTrace(site, captureCallSite)
  else site.stack = new Error('call').stack
  return site
}

/**
 * Replaces the stack of an error with that of the call. A reply arrives in a turn of its own, so the original stack
 * does not contain the caller.
 */
export function setCallerStack(error: Error, site: CallSite): void {
  const frames = site.stack?.split('\n').filter((line) => /^\s+at |@/.test(line)) ?? []
  if (frames.length === 0) return
  const message = String(error)
  const startsWithMessage = error.stack?.startsWith(message) === true
  error.stack = (startsWithMessage ? [message, ...frames] : frames).join('\n')
}
