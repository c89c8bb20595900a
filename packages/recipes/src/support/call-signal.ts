/** Returns a signal for one call, which aborts when the caller's or the recipe's does. */
export const callSignal = (closing: AbortSignal, caller?: AbortSignal): AbortSignal =>
  caller === undefined ? closing : AbortSignal.any([caller, closing])
