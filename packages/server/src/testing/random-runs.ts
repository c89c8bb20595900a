/** Whether tests may take long: ZABRA_LONG_TESTS=1. */
export const IS_LONG = process.env['ZABRA_LONG_TESTS'] === '1'

/** Returns how many random histories a test plays: all with ZABRA_LONG_TESTS=1, else a third of them. */
export const randomRuns = (all: number): number => (IS_LONG ? all : Math.ceil(all / 3))
