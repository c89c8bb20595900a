import { expect, it } from 'vitest'
import { sim } from './testing/run-sim.ts'

it.each([[['--help']], [['campaign', '--help']], [['-h']]])(
  'pnpm sim %j prints the examples and plays nothing',
  async (args) => {
    const { code, output } = await sim(args)
    expect(code).toBe(0)
    expect(output).toContain('pnpm sim --seeds')
    expect(output).toContain('pnpm sim campaign')
    expect(output).not.toMatch(/simulation: \d/)
  },
)
