import { createServer as listen, type AddressInfo } from 'node:net'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from '@zabra/client'
import { nodePlatform } from '@zabra/runtime/node'
import { parseConfiguration } from '@zabra/server'
import { createServer, defaults, type Server } from '@zabra/server/core'
import { freePorts } from '@zabra/testkit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CommandRun, type RunResult } from './testing/cli-fixture.ts'

const folder = mkdtempSync(join(tmpdir(), 'zabra-recover-'))
const dataDirOf = (id: number): string => join(folder, String(id))
const config = join(folder, 'zoo.cfg')
const IDS = [1, 2, 3]
const servers = new Map<number, Server>()
const lines: string[] = []
const addresses: string[] = []

async function start(id: number): Promise<void> {
  const note = (_: object, sentence: string): void => void lines.push(`${id} ${sentence}`)
  const settings = defaults({
    dataDir: dataDirOf(id),
    clientPort: Number(addresses[id - 1]!.split(':')[1]),
    serverId: id,
    tickTimeMs: 200,
    ensemble: parseConfiguration(serverLines.join('\n')),
  })
  const logger = { error: note, warn: note, info: note, debug() {} }
  servers.set(id, await createServer(settings, { ...nodePlatform(), logger }))
}

let serverLines: string[]

beforeAll(async () => {
  const ports = await freePorts(9)
  serverLines = IDS.map((id) => {
    const [quorum, election, client] = ports.slice(id * 3 - 3)
    addresses.push(`127.0.0.1:${client}`)
    return `server.${id}=127.0.0.1:${quorum}:${election};127.0.0.1:${client}`
  })
  writeFileSync(config, `tickTime=2000\n${serverLines.join('\n')}\n`)
  await Promise.all(IDS.map(start))
  await Promise.all(IDS.map((id) => write(`/from-${id}`, id)))
  await servers.get(3)!.close()
  // It may have led: the others elect a leader then.
  const others = [servers.get(1)!, servers.get(2)!]
  while (!others.every(({ serving }) => serving) || !others.some(({ role }) => role === 'leading'))
    await setImmediate()
  writeFileSync(join(dataDirOf(3), 'myid'), '3\n')
})

afterAll(async () => {
  await Promise.all([...servers.values()].map((server) => server.close()))
  rmSync(folder, { recursive: true })
})

/** Creates a node at a server once that serves. */
async function write(path: string, id: number): Promise<void> {
  const zk = await connect({ servers: addresses[id - 1]!, sessionTimeoutMs: 10_000 })
  await zk.create(path, { data: null })
  await zk.close()
}

const force = (...flags: string[]): Promise<RunResult> =>
  new CommandRun(
    ['recover', 'force', dataDirOf(3), '--members', '3', '--config', config, ...flags],
    undefined,
    {
      input: '',
    },
  ).ended

describe('zabra recover force on a member whose ensemble has a quorum', () => {
  it('asks no server for one that runs on the folder itself', async () => {
    const argv = ['recover', 'force', dataDirOf(1), '--members', '1', '--config', config]
    const { code, out, err } = await new CommandRun(argv, undefined, { input: '' }).ended
    expect([code, out, err]).toEqual([1, '', expect.stringContaining('in use by')])
  })

  it('refuses, also with --yes, and names the members that serve', async () => {
    for (const flags of [[], ['--yes']]) {
      const { code, out, err } = await force(...flags)
      expect(code).toBe(9)
      expect(out).toMatch(
        /^server 1: it serves, so a quorum is there \(mode (?:leader|follower)\)\nserver 2: it serves/,
      )
      expect(err).toMatch(
        /The quorum is not lost: members have a leader: server 1 \(mode \w+\), server 2 \(mode \w+\)\. .*Start this member as it is/,
      )
    }
  })

  it('does it on demand, and the others refuse the forced member and go on', async () => {
    expect((await force('--yes', '--although-a-quorum-answers')).code).toBe(0)
    lines.length = 0
    await start(3)
    while (!lines.some((line) => /^[12] The votes of another server do not count/.test(line)))
      await setImmediate()
    await write('/goes-on', 1)
    expect(lines.filter((line) => line.includes('The server stops'))).toEqual([])
  })

  it('lists members that run and wait for a leader, and goes on without the quorum', async () => {
    await Promise.all([servers.get(2)!.close(), servers.get(3)!.close()])
    servers.delete(2)
    // A member that has led keeps the port of a leader open until its role has ended, and counts as one that serves until then.
    let told = await force()
    while (!told.out.includes('server 1: it runs and does not serve (not serving)')) told = await force()
    expect(told.code).toBe(0)
    expect(told.out).toContain('\nserver 2: it does not run')
  })

  it('refuses while members that are a quorum wait for a leader, since they may be electing one', async () => {
    const answer = 'This ZooKeeper instance is not currently serving requests\n'
    const waiting = [1, 2].map(() =>
      listen((socket) => socket.once('data', () => socket.end(answer))).listen(0, '127.0.0.1'),
    )
    await Promise.all(waiting.map((server) => new Promise((resolve) => server.once('listening', resolve))))
    const ports = await freePorts(7)
    const clientPorts = [...waiting.map((server) => (server.address() as AddressInfo).port), ports[6]]
    const members = IDS.map(
      (id, i) => `server.${id}=127.0.0.1:${ports[i * 2]}:${ports[i * 2 + 1]};127.0.0.1:${clientPorts[i]}`,
    )
    const file = join(folder, 'waiting.cfg')
    writeFileSync(file, `${members.join('\n')}\n`)
    const { code, out, err } = await force('--config', file)
    for (const server of waiting) server.close()
    expect(out).toMatch(/^server 1: it runs and does not serve .*\nserver 2: it runs and does not serve/)
    expect([code, err]).toEqual([9, expect.stringContaining('members that run are a quorum')])
  })
})
