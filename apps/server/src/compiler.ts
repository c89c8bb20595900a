import { setFlagsFromString } from 'node:v8'

/**
 * V8 flags that raise the inlining limits of the optimizing compiler. By default V8 inlines functions of up to 460 bytes of
 * bytecode, 920 bytes in total per caller, and only calls made in at least one of seven runs. A write calls very many small
 * functions: with these limits the main thread uses 10 % less CPU for a create and 5 % less for a set, on Node 20. The
 * concurrent compiler works more during the first seconds; with much higher limits that costs more than it saves for a while.
 */
export const inliningFlags: readonly string[] = [
  '--max-inlined-bytecode-size=1000',
  '--max-inlined-bytecode-size-cumulative=2000',
  '--min-inlining-frequency=0.02',
]

/**
 * Sets the inlining flags for code compiled from now on, in the whole process. For that reason the program calls this and no
 * library does. Keeps flags that are set on the command line of Node.
 */
export function raiseInliningLimits(
  execArgv: readonly string[] = process.execArgv,
  set: (flag: string) => void = setFlagsFromString,
): void {
  const names = new Set(execArgv.map(flagName))
  for (const flag of inliningFlags) if (!names.has(flagName(flag))) set(flag)
}

/** Returns the name of a flag with dashes; V8 accepts dashes and underscores alike. */
export const flagName = (flag: string): string =>
  flag.split('=')[0]!.replaceAll('_', '-').replace(/^-+/, '--')
