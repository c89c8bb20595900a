import type * as childProcess from 'node:child_process'
import type * as crypto from 'node:crypto'
import type * as perfHooks from 'node:perf_hooks'
import type * as v8 from 'node:v8'
import type * as zlib from 'node:zlib'

/** Modules of Node that are needed synchronously, but rarely. Each takes one or two megabytes once it is loaded. */
interface RareModules {
  readonly 'node:child_process': typeof childProcess
  readonly 'node:crypto': typeof crypto
  readonly 'node:perf_hooks': typeof perfHooks
  readonly 'node:v8': typeof v8
  readonly 'node:zlib': typeof zlib
}

/** Returns a module of Node, which the first call loads. Throws when the platform does not have it. */
export function builtinModule<Name extends keyof RareModules>(name: Name): RareModules[Name] {
  const module = process.getBuiltinModule(name) as RareModules[Name] | undefined
  if (module === undefined)
    throw new Error(
      `Expected a platform with ${name}, got ${process.version} without it; run a build that has it`,
    )
  return module
}
