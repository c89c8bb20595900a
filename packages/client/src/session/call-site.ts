import type { CallSite } from './pending-request.ts'

/** Where the call stands that is being made now. Text is made of it only when it is asked for. */
export function captureCallSite(): CallSite {
  const site: CallSite = {}
  // Not every platform has it; where it is missing, this function stands above those who call it.
  if (typeof Error.captureStackTrace === 'function') Error.captureStackTrace(site, captureCallSite)
  else site.stack = new Error('call').stack
  return site
}

/** An answer comes in a turn of its own, so its error knows nothing of who asked. From now on its stack tells that. */
export function setCallerStack(error: Error, site: CallSite): void {
  const frames = site.stack?.split('\n').filter((line) => /^\s+at |@/.test(line)) ?? []
  if (frames.length === 0) return
  const message = String(error)
  const headed = error.stack?.startsWith(message) === true
  error.stack = (headed ? [message, ...frames] : frames).join('\n')
}
