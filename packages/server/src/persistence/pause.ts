/** Returns a promise, to be awaited, when the caller has worked long enough without a pause; undefined otherwise. Throws to end the work. */
export type Pause = () => Promise<void> | undefined
