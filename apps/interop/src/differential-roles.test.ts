import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Step } from './differential/case.ts'
import { allCases } from './differential/cases.ts'
import { CaseRunner } from './differential/runner.ts'
import { Ensemble } from './ensemble/ensemble.ts'
import { isLong } from './harness/requirements.ts'
import { Server, serverUnderTest } from './harness/servers.ts'

const config = {
  extendedTypesEnabled: 'true',
  enforceQuota: 'true',
  // No reply depends on a flush, and tens of thousands of writes are flushed one by one otherwise.
  forceSync: 'no',
  // A voter and its observer are an ensemble.
  standaloneEnabled: 'false',
  // The digest of super:secret.
  'DigestAuthenticationProvider.superDigest': 'super:lK75jTNcA+U9vtVEw5vB51mj/w4=',
}
// The removal of a container or TTL node would use a zxid while another case runs.
const javaFlags = ['-Dznode.container.checkIntervalMs=86400000']
// Only an ensemble has a configuration to show, so a standalone server cannot be the measure of it.
const cases = allCases().filter(
  ({ steps }) => !JSON.stringify(steps.map(textOf)).includes('/zookeeper/config'),
)

function textOf(step: Step): string {
  const parts = 'requests' in step ? step.requests : 'type' in step ? [step] : []
  return parts.map(({ body }) => body.toString('latin1')).join()
}

/**
 * The role of the member that receives the requests, with the members of its ensemble. Only long runs play the leader, which has the same
 * pipeline as a standalone server.
 */
const roles = [
  ...(isLong ? ([['leader', { kinds: [serverUnderTest, serverUnderTest] }]] as const) : []),
  ['follower', { kinds: [serverUnderTest, serverUnderTest] }],
  ['observer', { kinds: [serverUnderTest, serverUnderTest], observers: [2] }],
] as const

describe('every request gets the same reply from a member in each role as from a standalone server', () => {
  let alone: Server | undefined
  // One ensemble for each role: a case sees what earlier cases have left in the tree.
  const removals: (() => Promise<void>)[] = []
  let standalone: CaseRunner
  const members: CaseRunner[] = []

  beforeAll(async () => {
    alone = await Server.start({ kind: serverUnderTest, config: { ...config, tickTime: 400 }, javaFlags })
    standalone = new CaseRunner(alone.port)
    for (const [role, options] of roles) {
      const ensemble = await Ensemble.start({ ...options, config, javaFlags }, (remove) =>
        removals.push(remove),
      )
      await ensemble.leader()
      const modes = await Promise.all(ensemble.ids.map((id) => ensemble.modeOf(id)))
      members.push(new CaseRunner(ensemble.member(modes.indexOf(role) + 1).port))
    }
  })

  afterAll(async () => {
    await alone?.[Symbol.asyncDispose]()
    for (const remove of removals) await remove()
  })

  it.each(cases.map((one) => [one.name, one] as const))('%s', async (_name, one) => {
    const [expected, ...replies] = await Promise.all([standalone, ...members].map((each) => each.run(one)))
    for (const [index, [role]] of roles.entries())
      expect(replies[index], `the replies of the ${role}`).toEqual(expected)
  })
})
