import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  BadVersionError,
  connect,
  NewConfigNoQuorumError,
  NoAuthError,
  ReconfigDisabledError,
  ServerFaultError,
  type Client,
  type ConnectOptions,
} from '@zabra/client'
import { DynamicEnsemble, superPassword } from './client/dynamic-ensemble.ts'
import { describeWith } from './harness/requirements.ts'
import { reference } from './harness/servers.ts'

const encoder = new TextEncoder()
const admin = { auth: [{ scheme: 'digest', auth: encoder.encode(superPassword) }] }

const open = (servers: string, options: Partial<ConnectOptions> = {}): Promise<Client> =>
  connect({ servers, sessionTimeoutMs: 6000, signal: AbortSignal.timeout(30_000), ...options })

/** Returns the ids of the servers in a configuration. */
const ids = (data: Uint8Array): Set<number> =>
  new Set([...new TextDecoder().decode(data).matchAll(/^server\.(\d+)=/gm)].map(([, id]) => Number(id)))

/** Returns the version of a configuration. */
const versionOf = (data: Uint8Array): bigint =>
  BigInt(`0x${/^version=([0-9a-f]+)$/m.exec(new TextDecoder().decode(data))![1]!}`)

describeWith(['apache'], 'client.reconfig on an ensemble of Apache ZooKeeper', () => {
  let ensemble: DynamicEnsemble
  beforeAll(async () => {
    ensemble = await DynamicEnsemble.start(reference)
  }, 60_000)
  afterAll(() => ensemble[Symbol.asyncDispose]())

  it('rejects with NoAuthError without permission', async () => {
    await using client = await open(ensemble.address(1))
    await expect(client.reconfig({ leaving: '3' })).rejects.toThrow(NoAuthError)
  })

  it('rejects with BadVersionError when the configuration has another version', async () => {
    await using client = await open(ensemble.address(1), admin)
    await expect(client.reconfig({ leaving: '3', version: 77n })).rejects.toThrow(BadVersionError)
  })

  it('rejects with BAD_ARGUMENTS for a malformed server line', async () => {
    await using client = await open(ensemble.address(1), admin)
    const nonsense = client.reconfig({ joining: 'server.9=nowhere' })
    await expect(nonsense).rejects.toThrow(ServerFaultError)
    await expect(nonsense).rejects.toMatchObject({ code: 'BAD_ARGUMENTS', maybeApplied: false })
  })

  it('rejects with NewConfigNoQuorumError when too few of the new servers run', async () => {
    await using client = await open(ensemble.address(1), admin)
    const line = (id: number): string => `server.${id}=127.0.0.1:${id}:${id + 10};127.0.0.1:${id + 20}`
    const members = [ensemble.line(1), line(7), line(8)].join(',')
    await expect(client.reconfig({ members }, { retry: false })).rejects.toThrow(NewConfigNoQuorumError)
  })

  it('removes and adds servers, and a client with trackEnsemble keeps its session', async () => {
    // A request that removes the leader loses its reply, so the leader stays.
    const leader = await ensemble.leader()
    const [first, second] = [1, 2, 3].filter((id) => id !== leader) as [number, number]
    await using client = await open(ensemble.address(leader), admin)
    await using follower = await open(ensemble.address(first), { trackEnsemble: true })
    const session = follower.session.id
    await follower.create('/followed', { mode: 'ephemeral' })

    const left = await client.reconfig({ leaving: String(first) })
    expect(ids(left.data)).toEqual(new Set([leader, second]))
    expect(ids((await client.getConfig()).data)).toEqual(new Set([leader, second]))
    // Its server has left the ensemble, so the client connects to another one.
    const elsewhere = [leader, second].map((id): string | undefined => `tcp://${ensemble.address(id)}`)
    for await (const { state, server } of follower.states()) {
      if (state === 'connected' && elsewhere.includes(server)) break
    }
    expect((await follower.exists('/followed'))!.ephemeralOwner).toBe(session)

    await ensemble.startJoiner(4)
    const joined = await client.reconfig({ joining: ensemble.line(4), version: versionOf(left.data) })
    expect(ids(joined.data)).toEqual(new Set([leader, second, 4]))
    const members = [leader, 4].map((id) => ensemble.line(id)).join(',')
    expect(ids((await client.reconfig({ members })).data)).toEqual(new Set([leader, 4]))
    await follower.sync('/')
    expect(ids((await follower.getConfig()).data)).toEqual(new Set([leader, 4]))
    expect((await follower.exists('/followed'))!.ephemeralOwner).toBe(session)
  })
})

describeWith(['apache'], 'client.reconfig on an ensemble with reconfigEnabled=false', () => {
  it('rejects with ReconfigDisabledError', async () => {
    await using ensemble = await DynamicEnsemble.start(reference, { enabled: false })
    await using client = await open(ensemble.address(1), admin)
    const refused = client.reconfig({ leaving: '3' })
    await expect(refused).rejects.toThrow(ReconfigDisabledError)
    await expect(refused).rejects.toMatchObject({ maybeApplied: false })
  })
})
