import { setFlagsFromString } from 'node:v8'

/**
 * Left alone, V8 takes the body of a called function into its caller up to 460 bytes of bytecode each and 920 in all, and only
 * where the call is made in one of seven runs. A write goes through very many small functions, so with more room the main
 * thread works a tenth less for a create and a twentieth less for a set, on Node 20. The compiler, which runs beside it, works
 * more in the first seconds; with much more room than this it takes longer than that saves for a while (*What was tried:
 * writes* in `docs/performance.md`).
 */
export const inliningFlags: readonly string[] = [
  '--max-inlined-bytecode-size=1000',
  '--max-inlined-bytecode-size-cumulative=2000',
  '--min-inlining-frequency=0.02',
]

/**
 * For the whole process, and for what is compiled from now on: a matter of the program, and of no library in it. What the
 * command line of the process sets stays as it is.
 */
export function raiseInliningLimits(
  given: readonly string[] = process.execArgv,
  set: (flag: string) => void = setFlagsFromString,
): void {
  const names = new Set(given.map(flagName))
  for (const flag of inliningFlags) if (!names.has(flagName(flag))) set(flag)
}

/** V8 takes dashes and underscores for the same. */
const flagName = (flag: string): string => flag.split('=')[0]!.replaceAll('_', '-').replace(/^-+/, '--')
