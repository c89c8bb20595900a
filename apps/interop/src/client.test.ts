import { afterAll, beforeAll, describe, it } from 'vitest'
import { scenarios, type ScenarioContext } from '../../../packages/client/src/testing/scenarios.ts'
import { startEnsemble } from './client/ensemble.ts'
import { ScenarioServers } from './client/scenario-servers.ts'
import { describeWith } from './harness/requirements.ts'
import { ours, reference, Server } from './harness/servers.ts'

/** Plays all scenarios, one after the other, on servers that stay. */
function playOn(start: () => Promise<readonly Server[]>, batchReads = false): void {
  let servers: readonly Server[] = []
  let real: ScenarioServers
  beforeAll(async () => {
    servers = await start()
    real = await ScenarioServers.behindProxies(servers)
  }, 60_000)
  afterAll(async () => {
    await real.close()
    for (const server of servers) await server[Symbol.asyncDispose]()
  })
  const stage = (): ScenarioContext => {
    const { connect, ...rest } = real.context
    return { ...rest, connect: (options) => connect({ batchReads, ...options }) }
  }
  it.each(scenarios)('$name', async ({ run: play }) => play(stage()))
}

const config = { tickTime: 500 }

describe('our client on our server', () => {
  playOn(async () => [await Server.start({ kind: ours, config })])
})

describe('our client on our server, with reads that leave together', () => {
  playOn(async () => [await Server.start({ kind: ours, config })], true)
})

describeWith(['apache'], 'our client on Apache ZooKeeper', () => {
  playOn(async () => [await Server.start({ kind: reference, config })])
})

describeWith(['apache'], 'our client on Apache ZooKeeper, with reads that leave together', () => {
  playOn(async () => [await Server.start({ kind: reference, config })], true)
})

describeWith(['apache'], 'our client on an ensemble of three Apache ZooKeeper servers', () => {
  playOn(() => startEnsemble(reference, 3))
})
