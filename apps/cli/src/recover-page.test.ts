import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from '@zabra/client'
import { httpServer, nodePlatform } from '@zabra/runtime/node'
import { silentLogger } from '@zabra/runtime'
import { parseConfiguration } from '@zabra/server'
import { createServer, defaults, type Server } from '@zabra/server/core'
import { freePorts } from '@zabra/testkit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CommandRun, type RunResult } from './testing/cli-fixture.ts'

const IDS = [1, 2, 3, 4, 5]
const page = readFileSync(new URL('../../../docs/recover.md', import.meta.url), 'utf8')
const folder = mkdtempSync(join(tmpdir(), 'zabra-page-'))
/** Where the folders lie without reconfiguration. */
const copies = mkdtempSync(join(tmpdir(), 'zabra-copies-'))
const config = join(folder, 'zoo.cfg')
const servers = new Map<number, Server>()
let lines: readonly string[]
let addresses: readonly string[]
let adminPorts: readonly number[]
let superDigest: string

const dataDirOf = (id: number, base = folder): string => join(base, String(id))

/** Starts members with a configuration of `ids`. */
async function start(started: readonly number[], ids: readonly number[], base = folder): Promise<void> {
  for (const id of started) {
    mkdirSync(dataDirOf(id, base), { recursive: true })
    writeFileSync(join(dataDirOf(id, base), 'myid'), `${id}\n`)
    const settings = defaults({
      dataDir: dataDirOf(id, base),
      clientPort: Number(addresses[id - 1]!.split(':')[1]),
      serverId: id,
      // Long enough for five servers in one busy process.
      tickTimeMs: 500,
      initLimit: 60,
      syncLimit: 20,
      reconfigEnabled: true,
      standaloneEnabled: false,
      superDigest,
      adminPort: adminPorts[id - 1]!,
      adminAddress: '127.0.0.1',
      ensemble: parseConfiguration(ids.map((each) => lines[each - 1]!).join('\n')),
    })
    servers.set(
      id,
      await createServer(settings, {
        ...nodePlatform({ networkFactories: { http: httpServer } }),
        logger: silentLogger,
      }),
    )
  }
}

const stop = (ids: readonly number[]): Promise<unknown> =>
  Promise.all(
    ids.map(async (id) => {
      const server = servers.get(id)
      servers.delete(id)
      await server?.close()
    }),
  )

/** Runs a command of the page, with its names replaced. */
function command(line: string, names: Record<string, string>, id = 4): Promise<RunResult> {
  expect(page).toContain(`\n${line}\n`)
  const argv = line.split(' ').map((word) => names[word] ?? word.replaceAll("'", ''))
  const environment = {
    ZABRA_ADMIN: `http://127.0.0.1:${adminPorts[id - 1]}`,
    ZABRA_AUTH: 'digest:super:secret',
  }
  return new CommandRun(argv.slice(1), addresses[id - 1]!, { input: '', environment }).ended
}

async function rows(id: number): Promise<number> {
  const zk = await connect({ servers: addresses[id - 1]!, sessionTimeoutMs: 10_000 })
  const { children } = await zk.getChildren('/app')
  await zk.create('/app/row-', { mode: 'persistentSequential' })
  await zk.close()
  return children.length
}

beforeAll(async () => {
  const ports = await freePorts(20)
  addresses = IDS.map((id) => `127.0.0.1:${ports[id - 1]}`)
  adminPorts = ports.slice(15)
  lines = IDS.map((id) => `server.${id}=127.0.0.1:${ports[id + 4]}:${ports[id + 9]};${addresses[id - 1]}`)
  writeFileSync(config, lines.join('\n'))
  superDigest = (await new CommandRun(['digest', 'super'], undefined, { input: 'secret\n' }).ended).out.trim()
})

afterAll(async () => {
  await stop(IDS)
  for (const each of [folder, copies]) rmSync(each, { recursive: true })
})

describe('docs/recover.md', () => {
  it(
    'brings an ensemble that has lost three of five members back to five',
    { timeout: 300_000 },
    async () => {
      await start(IDS, IDS)
      const zk = await connect({ servers: addresses.join(), sessionTimeoutMs: 10_000 })
      await zk.create('/app')
      for (let row = 0; row < 3; row++) await zk.create('/app/row-', { mode: 'persistentSequential' })
      await zk.close()
      await stop(IDS)
      for (const id of [1, 2, 3]) rmSync(dataDirOf(id), { recursive: true })

      const folders = { '/var/lib/zookeeper': dataDirOf(4), '/mnt/zk4/zookeeper': dataDirOf(5) }
      const planned = await command('zabra recover plan /var/lib/zookeeper /mnt/zk4/zookeeper', folders)
      expect(planned.out).toContain('These are no quorum')
      const force = 'zabra recover force /var/lib/zookeeper --members 4 --config zoo.cfg'
      const names = { ...folders, 'zoo.cfg': config }
      expect((await command(force, names)).out).toContain('This cannot be undone')
      expect((await command(`${force} --yes`, names)).out).toContain('The ensemble has the members 4 now')
      for (const id of IDS)
        cpSync(join(dataDirOf(4), 'version-2'), join(dataDirOf(id, copies), 'version-2'), { recursive: true })
      const adopt = 'zabra recover adopt /var/lib/zookeeper --yes'
      for (const id of [1, 2, 3]) mkdirSync(dataDirOf(id))
      for (const id of [1, 2, 3, 5])
        expect((await command(adopt, { '/var/lib/zookeeper': dataDirOf(id) })).code).toBe(0)

      await start([4], [4])
      const members = [4]
      for (const id of [5, 1, 2, 3]) {
        members.push(id)
        await start([id], members)
        const line = lines[id - 1]!.replace('server.', '')
        const adding = "zabra member add '5=zk5:2888:3888;2181'"
        const add = (): Promise<RunResult> => command(adding, { "'5=zk5:2888:3888;2181'": line })
        for (let result = await add(); result.code !== 0; result = await add())
          expect(result.err).toMatch(
            /Wait until zabra cluster status shows them|It is not known whether|when \/readyz answers 200/,
          )
      }
      for (const [at, id] of IDS.entries()) expect(await rows(id)).toBe(3 + at)
      await stop([4, 5])
      expect(await rows(1)).toBe(8)
    },
  )

  it('does so without reconfiguration, by copies of the data of the forced member', async () => {
    await stop(IDS)
    expect(page).toContain('copy its `version-2` to the others')
    await start(IDS, IDS, copies)
    for (const [at, id] of IDS.entries()) expect(await rows(id)).toBe(3 + at)
    await stop([1, 2])
    expect(await rows(3)).toBe(8)
  })
})
