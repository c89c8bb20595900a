import type { GivenServerSettings } from '@zabra/server'

/** Returns settings with those that a test gives over those of all tests; an undefined one is not given. */
export const withGiven = (
  ofTests: GivenServerSettings,
  given: GivenServerSettings = {},
): GivenServerSettings => ({
  ...ofTests,
  ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
})
