import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { limitYoungGeneration } from './young-generation.ts'

const MB = 2 ** 20

function fixture(...execArgv: readonly string[]) {
  const state = { bytes: 2 * MB, flags: [] as string[], collected: undefined as (() => void) | undefined }
  limitYoungGeneration({
    execArgv,
    bytes: () => state.bytes,
    setFlag: (flag) => void state.flags.push(flag),
    onCollection(action) {
      state.collected = action
      return () => (state.collected = undefined)
    },
  })
  return state
}

it('grows to 4 MB for each half, and is not looked at any more', () => {
  const state = fixture('--enable-source-maps')
  state.collected!()
  expect(state.flags).toEqual([])
  state.bytes = 8 * MB
  state.collected!()
  expect(state.flags).toEqual(['--semi-space-growth-factor=1'])
  expect(state.collected).toBeUndefined()
})

it.each(['--max-semi-space-size=64', '--max_semi_space_size=64', '--semi-space-growth-factor=2'])(
  'is left to the operator who sets %s',
  (flag) => expect(fixture(flag)).toMatchObject({ flags: [], collected: undefined }),
)

it('has a flag that this version of Node knows', () => {
  const known = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8', maxBuffer: 1 << 24 })
  expect(known).toContain('--semi-space-growth-factor (')
})
