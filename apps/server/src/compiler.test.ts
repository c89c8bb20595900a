import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { inliningFlags } from './compiler.ts'

it('asks the compiler only for what this platform knows, since it says no more than a line about anything else', () => {
  const known = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8', maxBuffer: 1 << 24 })
  for (const flag of inliningFlags) expect(known).toContain(`${flag.split('=')[0]} (`)
})
