import { setFlagsFromString } from 'node:v8'

/**
 * Left alone, V8 takes the body of a called function into its caller up to 460 bytes of bytecode each and 920 in all, and only
 * where the call is made in one of seven runs. A write goes through a hundred small functions, so with more room the main
 * thread works a tenth less for a create and a twentieth less for a set. With much more room the compiler, which runs beside
 * it, takes as long as that saves in the first half minute (*What was tried: writes* in `docs/performance.md`).
 */
export const inliningFlags: readonly string[] = [
  '--max-inlined-bytecode-size=1000',
  '--max-inlined-bytecode-size-cumulative=2000',
  '--min-inlining-frequency=0.02',
]

/** For the whole process, and for what is compiled from now on: a matter of the program, and of no library in it. */
export function inlineMore(): void {
  for (const flag of inliningFlags) setFlagsFromString(flag)
}
