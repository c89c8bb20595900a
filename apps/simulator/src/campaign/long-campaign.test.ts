import { mkdtempSync, readFileSync, rmSync, watch } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { sim } from '../testing/run-sim.ts'
import { seedsIn, type CampaignTotals } from './totals.ts'

let folder = ''
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'zabra-campaign-'))))
afterEach(() => rmSync(folder, { recursive: true }))

const PLANS = ['--start', '1', '--servers', '1', '--minutes', '0.001']
const args = (file: string): string[] => ['campaign', ...PLANS, '--file', join(folder, file)]
const totalsIn = (file: string): CampaignTotals =>
  JSON.parse(readFileSync(join(folder, file), 'utf8')) as CampaignTotals

/** Aborts when a file with this name appears. */
function whenWritten(name: string): AbortSignal {
  const written = new AbortController()
  const watcher = watch(folder, (_, file) => {
    if (file !== name) return
    watcher.close()
    written.abort()
  })
  return written.signal
}

it('a campaign that was killed plays the seeds that are left, and the totals are those of one run', async () => {
  const killed = await sim(args('killed.json'), whenWritten('killed.json'))
  expect(killed.code).toBe(1)
  const done = seedsIn(totalsIn('killed.json').commits[0]!.played)
  expect(done).toBeGreaterThan(0)
  const all = ['--seeds', String(done + 3)]
  for (const file of ['killed.json', 'whole.json']) {
    const { code, output } = await sim([...args(file), ...all])
    expect({ code, output }, output).toMatchObject({
      code: 0,
      output: expect.stringContaining(`${done + 3} seeds at `),
    })
  }
  const [[sum], [expected]] = [totalsIn('killed.json').commits, totalsIn('whole.json').commits]
  expect({ ...sum, processorMs: 0 }).toEqual({ ...expected, processorMs: 0 })
  expect(readFileSync(join(folder, 'killed.md'), 'utf8')).toContain(`| 1 to ${done + 3} | ${done + 3} |`)
}, 600_000)

it('a campaign with a file of other contents says what it expected and changes nothing', async () => {
  const { code, output } = await sim(['campaign', '--seeds', '1', '--file', import.meta.filename])
  expect(code).toBe(1)
  expect(output).toContain('Expected the totals of a campaign in ')
})
