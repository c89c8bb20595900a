import { afterAll, beforeAll, describe, it } from 'vitest'
import { scenarios, type ScenarioContext } from '../../../packages/client/src/testing/scenarios.ts'
import { startEnsemble } from './client/ensemble.ts'
import { ScenarioServers } from './client/scenario-servers.ts'
import { describeWith } from './harness/requirements.ts'
import { serverUnderTest, reference, Server } from './harness/servers.ts'

/** Runs all client scenarios in turn on the same servers. */
function runScenariosOn(start: () => Promise<readonly Server[]>, batchReads = false): void {
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
  const context = (): ScenarioContext => {
    const { connect, ...rest } = real.context
    return { ...rest, connect: (options) => connect({ batchReads, ...options }) }
  }
  it.each(scenarios)('$name', async ({ run }) => run(context()))
}

const config = { tickTime: 500 }

describe('the Zabra client on Zabra', () => {
  runScenariosOn(async () => [await Server.start({ kind: serverUnderTest, config })])
})

describe('the Zabra client with batchReads on Zabra', () => {
  runScenariosOn(async () => [await Server.start({ kind: serverUnderTest, config })], true)
})

describeWith(['apache'], 'the Zabra client on Apache ZooKeeper', () => {
  runScenariosOn(async () => [await Server.start({ kind: reference, config })])
})

describeWith(['apache'], 'the Zabra client with batchReads on Apache ZooKeeper', () => {
  runScenariosOn(async () => [await Server.start({ kind: reference, config })], true)
})

describeWith(['apache'], 'the Zabra client on an ensemble of three Apache ZooKeeper servers', () => {
  runScenariosOn(() => startEnsemble(reference, 3))
})
