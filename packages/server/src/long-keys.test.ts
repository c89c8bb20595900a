import { CreateMode, OpCode } from '@zabra/protocol'
import { ManualClock, silentLogger } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { quotaWarnings } from './connections/quota-warnings.ts'
import { PreparerFixture } from './core/prepare/testing/preparer-fixture.ts'
import { mostLongKeys } from './core/testing/shared-keys.ts'

const COUNT = 12
const longPath = (index: number): string => `/${'x'.repeat(17_000)}${10_000 + index}`

describe('paths above 16,383 characters are in no Map or Set', () => {
  it('as the names of pending ephemeral nodes', () => {
    const fixture = new PreparerFixture()
    const most = mostLongKeys(() => {
      for (let i = 0; i < COUNT; i++)
        expect(
          fixture.prepare({ op: 'create', path: longPath(i), flags: CreateMode.EPHEMERAL }),
        ).toMatchObject({ type: OpCode.create })
    })
    expect(most).toBe(0)
  })

  it('as the subjects of quotas whose usage is counted', () => {
    const fixture = new PreparerFixture()
    const quota = (index: number, name: string): string => `/zookeeper/quota${longPath(index)}/${name}`
    const most = mostLongKeys(() => {
      for (let i = 0; i < COUNT; i++) {
        for (const path of [longPath(i), `/zookeeper/quota${longPath(i)}`]) fixture.create(path)
        for (const name of ['zookeeper_limits', 'zookeeper_stats'])
          fixture.create(quota(i, name), 'count=5,bytes=5')
        fixture.create(`${longPath(i)}/below`, '12')
      }
    })
    expect([most, fixture.dataOf(quota(7, 'zookeeper_stats'))]).toEqual([0, 'count=2,bytes=2'])
  })

  it('as quotas whose excess is logged', () => {
    const warn = quotaWarnings({ clock: new ManualClock(), logger: silentLogger })
    const breach = { what: 'nodes', isHard: false, limit: 1, use: 2 } as const
    expect(mostLongKeys(() => Array.from({ length: COUNT }, (_, i) => warn(longPath(i), breach)))).toBe(0)
  })
})
