import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { raiseInliningLimits, inliningFlags } from './compiler.ts'

it('sets only V8 flags that this version of Node knows, since V8 ignores others with a warning', () => {
  const known = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8', maxBuffer: 1 << 24 })
  for (const flag of inliningFlags) expect(known).toContain(`${flag.split('=')[0]} (`)
})

it('keeps flags that are set on the command line of Node, with dashes or underscores', () => {
  const set: string[] = []
  raiseInliningLimits(['--max_inlined_bytecode_size=460', '--cpu-prof'], (flag) => void set.push(flag))
  expect(set).toEqual(inliningFlags.slice(1))
})
