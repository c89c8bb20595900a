import { describe, expect, it } from 'vitest'
import { NO_CLUSTER, NOT_FINALIZED } from '../core/quorum/index.ts'
import { encodeFeatureReport } from '../core/zab/index.ts'
import { FeatureReports } from './feature-reports.ts'
import type { LearnerConnection } from './learner-connection.ts'

const MEMBERS = { release: 1, stored: NOT_FINALIZED }

function observer(serverId: number, isSynced = true): LearnerConnection {
  const extension = { level: 1, sharesSecret: false, hasData: true, cluster: NO_CLUSTER }
  return { serverId, isSynced, extension, levels: undefined, send() {} } as unknown as LearnerConnection
}

describe('the reports of observers', () => {
  it('count for the observer that sends them alone, and once it is up to date', () => {
    const [fourth, fifth, sixth] = [observer(4), observer(5), observer(6, false)]
    const context = { features: { state: NOT_FINALIZED } } as ConstructorParameters<typeof FeatureReports>[0]
    const reports = new FeatureReports(
      context,
      () => [fourth, fifth, sixth],
      () => {},
    )
    reports.receive(fourth, encodeFeatureReport([5, 7, 4].map((id) => ({ id, ...MEMBERS }))))
    reports.receive(sixth, encodeFeatureReport([{ id: 6, ...MEMBERS }]))
    expect(reports.all).toEqual([
      { id: 4, ...MEMBERS },
      { id: 5, release: 0, stored: NOT_FINALIZED },
    ])
  })
})
