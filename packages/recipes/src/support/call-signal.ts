/**
 * Returns a signal for one call, which aborts when the caller's or the recipe's does. Calls do not share the signal of the
 * recipe: Node warns of a memory leak when more than ten of them listen to it.
 */
export const callSignal = (closing: AbortSignal, caller?: AbortSignal): AbortSignal =>
  AbortSignal.any(caller === undefined ? [closing] : [caller, closing])
