import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { allCases } from './differential/cases.ts'
import { intended } from './differential/intended.ts'
import { CaseRunner } from './differential/runner.ts'
import { describeWith } from './harness/requirements.ts'
import { serverUnderTest, reference, Server } from './harness/servers.ts'

const recordFile = resolve(import.meta.dirname, '../fixtures/apache-3.9.5.json')
/** The replies of 3.9.5 in the cases where it differs from 3.8.0, recorded with ZABRA_RECORD=1. */
const repliesOf39: Record<string, string[]> = existsSync(recordFile)
  ? (JSON.parse(readFileSync(recordFile, 'utf8')) as Record<string, string[]>)
  : {}
const isRecording = process.env['ZABRA_RECORD'] === '1'

const config = {
  extendedTypesEnabled: 'true',
  enforceQuota: 'true',
  // No reply depends on a flush, and thousands of writes are flushed one by one otherwise.
  forceSync: 'no',
  // The digest of super:secret.
  'DigestAuthenticationProvider.superDigest': 'super:lK75jTNcA+U9vtVEw5vB51mj/w4=',
}
// The removal of a container or TTL node would use a zxid while another case runs.
const javaFlags = ['-Dznode.container.checkIntervalMs=86400000']
const cases = allCases()
describeWith(['apache'], 'every request gets the reply of Apache ZooKeeper', () => {
  let servers: readonly [Server, Server] | undefined
  let runners: readonly [CaseRunner, CaseRunner]
  const recorded: Record<string, string[]> = {}
  let ran = 0

  beforeAll(async () => {
    servers = await Promise.all([
      Server.start({ kind: reference, config, javaFlags }),
      Server.start({ kind: serverUnderTest, config, javaFlags }),
    ])
    runners = [new CaseRunner(servers[0].port), new CaseRunner(servers[1].port)]
  })

  afterAll(async () => {
    if (isRecording && ran === cases.length)
      writeFileSync(recordFile, `${JSON.stringify(recorded, null, 1)}\n`)
    await Promise.all((servers ?? []).map((server) => server[Symbol.asyncDispose]()))
  })

  it.each(cases.map((one) => [one.name, one] as const))('%s', async (name, one) => {
    const [apache, zabra] = await Promise.all(runners.map((runner) => runner.run(one)))
    ran++
    if (isRecording) {
      if (zabra!.join() !== apache!.join()) recorded[name] = zabra!
      return
    }
    const difference = serverUnderTest === 'zabra' ? intended.find((row) => row.case.test(name)) : undefined
    if (difference) {
      expect(zabra, `${name}: intended, because ${difference.reason}`).toEqual(difference.reply ?? zabra)
      expect(
        zabra,
        `${name} no longer differs: remove its row from the table of intended differences`,
      ).not.toEqual(repliesOf39[name] ?? apache)
      return
    }
    const expected = serverUnderTest === 'apache-3.8' ? apache : (repliesOf39[name] ?? apache)
    expect(zabra, `replay with: npx vitest run src/differential.test.ts -t ${JSON.stringify(name)}`).toEqual(
      expected,
    )
  })

  it('runs at least 300 cases without ending either server', () => {
    expect(cases.length).toBeGreaterThanOrEqual(300)
    expect(servers?.map((server) => server.isRunning)).toEqual([true, true])
  })
})
