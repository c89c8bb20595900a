import { ManualClock, silentLogger, type TlsNetwork } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { CertificateReload } from './certificates.ts'

const DAY_MS = 86_400_000

it.each([true, false])(
  'says each day that a certificate ends within 14 days, until there is another one (files are read: %s)',
  async (readsFiles) => {
    const clock = new ManualClock()
    const lines: unknown[] = []
    const logger = { ...silentLogger, warn: (context: object) => void lines.push(context) }
    const certificate = { validUntil: clock.wall() + 15 * DAY_MS, subjectHash: '' }
    let reads = 0
    const tls = { certificate, reload: async () => ++reads < 0 }
    const reload = new CertificateReload(tls as unknown as TlsNetwork, { clock, logger }, 'The certificates')
    reload.start(readsFiles)
    const pass = async (ms: number): Promise<void> => {
      clock.advance(ms)
      await clock.untilIdle()
    }
    await pass(DAY_MS)
    expect(lines).toEqual([])
    for (let i = 0; i < 3; i++) await pass(10_000)
    expect(lines).toEqual([{ id: 'tls.ends', end: new Date(certificate.validUntil).toISOString() }])
    await pass(DAY_MS)
    await pass(10_000)
    expect(lines.length).toBe(2)
    certificate.validUntil += 90 * DAY_MS
    await pass(2 * DAY_MS)
    await pass(10_000)
    expect(lines.length).toBe(2)
    reload.stop()
    expect(reads > 0).toBe(readsFiles)
  },
)

it('says each day that a certificate ends, also once the clock that was ahead is set back', async () => {
  const clock = new ManualClock()
  let lines = 0
  const logger = { ...silentLogger, warn: () => void lines++ }
  const certificate = { validUntil: clock.wall() + 10 * DAY_MS, subjectHash: '' }
  const tls = { certificate, reload: async () => false } as unknown as TlsNetwork
  const reload = new CertificateReload(tls, { clock, logger }, 'The certificates')
  clock.jumpWall(1000 * DAY_MS)
  reload.start(false)
  for (let day = 0; day < 3; day++) {
    clock.advance(10_000)
    await clock.untilIdle()
    expect(lines).toBe(day + 1)
    if (day === 0) clock.jumpWall(-1000 * DAY_MS)
    clock.advance(DAY_MS - 20_000)
    await clock.untilIdle()
    clock.advance(10_000)
    await clock.untilIdle()
  }
  reload.stop()
})
