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
