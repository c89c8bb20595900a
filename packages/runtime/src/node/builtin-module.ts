import type * as crypto from 'node:crypto'
import type * as zlib from 'node:zlib'

/** The modules of the platform that are wanted at once and seldom. Each takes a megabyte or two when it is loaded. */
interface Seldom {
  readonly 'node:crypto': typeof crypto
  readonly 'node:zlib': typeof zlib
}

/** A module of the platform, which is loaded by the first call. Throws when the platform has none of that name. */
export function builtinModule<Name extends keyof Seldom>(name: Name): Seldom[Name] {
  const module = process.getBuiltinModule(name) as Seldom[Name] | undefined
  if (module === undefined)
    throw new Error(
      `Expected a platform with ${name}, got ${process.version} without it; run a build that has it`,
    )
  return module
}
