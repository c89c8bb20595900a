/**
 * The key of the tags by which errors are recognised: a registered symbol, so that several copies of this package in one
 * process recognise each other's.
 */
export const BRAND = Symbol.for('zabra.error')

/**
 * Returns an error that `instanceof` takes for a `UsageError`, for modules that an application may bundle without a
 * client: the class would come with all of `errors.ts`.
 */
export const lightUsageError = (message: string): Error =>
  Object.assign(new Error(message), {
    name: 'UsageError',
    code: 'USAGE',
    retryable: false,
    scope: 'request',
    maybeApplied: false,
    [BRAND]: ['UsageError', 'ZooKeeperError'],
  } as const)
