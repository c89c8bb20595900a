import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { raiseInliningLimits, inliningFlags } from './compiler.ts'

it('asks the compiler only for what this platform knows, since it says no more than a line about anything else', () => {
  const known = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8', maxBuffer: 1 << 24 })
  for (const flag of inliningFlags) expect(known).toContain(`${flag.split('=')[0]} (`)
})

it('leaves alone what the command line of the process sets, however it is spelled', () => {
  const set: string[] = []
  raiseInliningLimits(['--max_inlined_bytecode_size=460', '--cpu-prof'], (flag) => void set.push(flag))
  expect(set).toEqual(inliningFlags.slice(1))
})
