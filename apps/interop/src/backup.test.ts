import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { nodeClock, nodeCompression, nodeCryptography, NodeDisk, nodeRandom } from '@zabra/runtime/node'
import { Catalog, loadBackup, nodesOf, openTarget, parseKey, type BackupStore } from '@zabra/server/backup'
import { expect, it, onTestFinished } from 'vitest'
import { Ensemble, until } from './ensemble/ensemble.ts'
import { bytes } from './harness/bytes.ts'
import { Client, createBody } from './harness/client.ts'
import { op } from './harness/opcodes.ts'
import { freePort } from './harness/ports.ts'
import { Prng } from './harness/prng.ts'
import { describeWith, isLong, motoPython } from './harness/requirements.ts'
import { run, scratch, Server, spawnOwned } from './harness/servers.ts'

const seed = Number(process.env['ZABRA_SEED'] ?? Date.now() % 1_000_000)
const TARGET = 's3://bucket/orders'
const KEY = '0123456789abcdef'.repeat(4)
const MOMENTS = 20
/** Time between two writes of each writer: servers, store and writers share a machine. The long form has the most that they can do. */
const PAUSE_MS = isLong ? 0 : 10
/** The long form kills the member on duty as soon as another one is back, with a log that begins after the last backup: a third one takes over. */
const MEMBERS = isLong ? 4 : 3
/** Requests without a reply. */
const IN_FLIGHT = isLong ? 256 : 8
const cli = resolve(import.meta.dirname, '../../cli/dist/main.js')

const SERVE = `
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address='127.0.0.1', port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()`

/** Starts a store with the interface of S3 with a bucket. Resolves to its URL. */
async function startStore(): Promise<string> {
  const child = spawnOwned(motoPython, ['-c', SERVE])
  // It stops serving when nothing reads its lines about requests.
  child.stderr.resume()
  onTestFinished(() => void child.kill('SIGKILL'))
  const port = await new Promise<number>((done, fail) => {
    child.stdout.once('data', (line: Buffer) => done(Number(line.toString())))
    child.once('exit', () => fail(new Error('moto has ended')))
  })
  const url = `http://127.0.0.1:${port}`
  expect((await fetch(`${url}/bucket`, { method: 'PUT' })).status).toBe(200)
  return url
}

/** The state of a node; undefined for none. */
interface State {
  readonly data: string
  readonly version: number
}

/** An acknowledged write: what its transaction has made of a node. */
interface Write {
  readonly zxid: number
  readonly path: string
  readonly state: State | undefined
}

/** Creates, changes and deletes nodes, and notes what was acknowledged. */
class Load {
  readonly writes: Write[] = []
  readonly #client: Client
  readonly #prng: Prng
  /** What the nodes will be when all requests are carried out. */
  readonly #planned = new Map<string, State>()
  readonly #ended: Promise<unknown>
  #isEnding = false

  constructor(client: Client, prng: Prng) {
    this.#client = client
    this.#prng = prng
    this.#ended = Promise.all(Array.from({ length: IN_FLIGHT }, () => this.#work()))
  }

  /** Ends when all requests have replies. */
  async end(): Promise<void> {
    this.#isEnding = true
    await this.#ended
    this.writes.sort((a, b) => a.zxid - b.zxid)
  }

  async #work(): Promise<void> {
    while (!this.#isEnding) {
      const path = `/n${this.#prng.int(40)}`
      const before = this.#planned.get(path)
      const data = String(this.#prng.int(1_000_000))
      if (before === undefined)
        await this.#write(op.create, createBody(path, data), path, { data, version: 0 })
      else if (this.#prng.int(10) === 0) await this.#write(op.delete, bytes().str(path).int(-1).done(), path)
      else
        await this.#write(op.setData, bytes().str(path).buffer(data).int(-1).done(), path, {
          data,
          version: before.version + 1,
        })
    }
  }

  async #write(type: number, body: Buffer, path: string, state?: State): Promise<void> {
    if (state === undefined) this.#planned.delete(path)
    else this.#planned.set(path, state)
    const { zxid } = await this.#client.ok(type, body, `a write to ${path}`)
    this.writes.push({ zxid: Number(zxid), path, state })
    if (PAUSE_MS > 0) await wait(PAUSE_MS)
  }
}

/** Returns the nodes after a transaction by the acknowledged writes. */
function modelAt(writes: readonly Write[], zxid: number): Record<string, State> {
  const nodes = new Map<string, State>()
  for (const write of writes) {
    if (write.zxid > zxid) break
    if (write.state === undefined) nodes.delete(write.path)
    else nodes.set(write.path, write.state)
  }
  return Object.fromEntries(nodes)
}

describeWith(['moto'], 'backups of an ensemble under load', () => {
  it(
    `in S3 restore to any moment, while members on duty end (ZABRA_SEED=${seed})`,
    async () => {
      const prng = new Prng(seed)
      const endpoint = await startStore()
      const folder = scratch('backup')
      const [keyFile, credentialsFile] = [join(folder, 'key'), join(folder, 'credentials')]
      writeFileSync(keyFile, KEY)
      writeFileSync(credentialsFile, '[default]\naws_access_key_id = ada\naws_secret_access_key = secret\n')
      const adminPorts = await Promise.all(Array.from({ length: MEMBERS }, freePort))
      const ensemble = await Ensemble.start({
        kinds: Array.from({ length: MEMBERS }, () => 'zabra' as const),
        config: {
          'admin.enableServer': 'true',
          'admin.role.backup': 'ip:127.0.0.1',
          'backup.target': TARGET,
          'backup.logInterval': 300,
          // The leader, which serves the load, has no duty.
          'backup.member': 'follower',
          'backup.encryption.keyFile': keyFile,
          'backup.s3.endpoint': endpoint,
          'backup.s3.credentialsFile': credentialsFile,
        },
        configOf: (id) => ({ 'admin.serverPort': adminPorts[id - 1]! }),
      })
      const platform = {
        disk: new NodeDisk(),
        random: nodeRandom,
        clock: nodeClock,
        cryptography: nodeCryptography,
      }
      const credentials = async () => ({ accessKeyId: 'ada', secretAccessKey: 'secret' })
      const store: BackupStore = {
        target: await openTarget(TARGET, platform, { endpoint, region: 'us-east-1', credentials }),
        cryptography: nodeCryptography,
        random: nodeRandom,
        key: parseKey(KEY, nodeCryptography, keyFile),
      }
      const backupsOf = async (id: number): Promise<string> => {
        const response = await fetch(`http://127.0.0.1:${adminPorts[id - 1]}/api/v1/backups`)
        return response.text()
      }
      const onDuty = async (): Promise<number> => {
        let found: number | undefined
        await until(
          'a member on duty',
          async () => {
            for (const id of ensemble.running) if (/"onDuty" ?: ?true/.test(await backupsOf(id))) found = id
            return found !== undefined
          },
          90_000,
        )
        return found!
      }
      let catalog = await Catalog.read(store)
      const upTo = async (): Promise<number> => {
        catalog = await Catalog.read(store, catalog)
        return catalog.end?.upTo ?? 0
      }
      await onDuty()
      await until('the first snapshot', async () => {
        await upTo()
        return catalog.snapshots.length > 0
      })
      const leader = await ensemble.leader()
      const client = await ensemble.connect(leader)
      const load = new Load(client, prng)
      const startedAt = performance.now()

      // A member that stops hands its duty over; one that is killed is replaced after half a minute.
      for (let round = 0; round < (isLong ? 4 : 1); round++) {
        const before = await upTo()
        if (!isLong || round === 0) await until('a part of the log', async () => (await upTo()) > before)
        const id = await onDuty()
        if (isLong) await ensemble.kill(id)
        else await ensemble.stop(id)
        expect(ensemble.running).toHaveLength(MEMBERS - 1)
        const after = await upTo()
        await until('the log to go on with another member', async () => (await upTo()) > after, 90_000)
        await ensemble.start(id)
        const taken = await fetch(`http://127.0.0.1:${adminPorts[(await onDuty()) - 1]}/api/v1/backups`, {
          method: 'POST',
        })
        expect(taken.status).toBeLessThan(300)
      }
      await load.end()
      const { writes } = load
      const seconds = (performance.now() - startedAt) / 1000
      console.log(`${writes.length} writes, ${Math.round(writes.length / seconds)} a second`)
      const last = writes.at(-1)!.zxid
      await until('the last write in the store', async () => (await upTo()) >= last)
      expect(catalog.bad).toEqual([])
      const first = catalog.snapshots[0]!.exactAt
      const moments = writes.filter(({ zxid }) => zxid >= first)
      expect(moments.length).toBeGreaterThan(MOMENTS)
      for (let moment = 0; moment < MOMENTS; moment++) {
        const { zxid } = moment === 0 ? moments.at(-1)! : prng.pick(moments)
        const { tree } = await loadBackup(store, catalog.chainTo(zxid), zxid, {
          compression: nodeCompression,
        })
        const nodes: Record<string, State> = {}
        for (const { path, data, stat } of nodesOf(tree))
          if (path.startsWith('/n'))
            nodes[path] = { data: Buffer.from(data!).toString(), version: stat.version }
        expect({ zxid, nodes }).toEqual({ zxid, nodes: modelAt(writes, zxid) })
      }

      // The same by command, and a server that starts on the folder.
      const dataDir = join(folder, 'restored')
      const { zxid } = prng.pick(moments)
      const env = {
        ZABRA_BACKUP_TARGET: TARGET,
        ZABRA_BACKUP_KEY_FILE: keyFile,
        AWS_SHARED_CREDENTIALS_FILE: credentialsFile,
        AWS_ENDPOINT_URL: endpoint,
      }
      const args = ['restore', '--to', dataDir, '--zxid', `0x${zxid.toString(16)}`]
      expect(await run(process.execPath, [cli, ...args], { env: { ...process.env, ...env } })).toMatchObject({
        code: 0,
      })
      await using server = await Server.start({ kind: 'zabra', dataDir })
      const { port } = server
      const reader = await Client.connect(port)
      const nodes: Record<string, State> = {}
      for (const path of Object.keys(modelAt(writes, zxid))) {
        const got = await reader.get(path)
        nodes[path] = { data: Buffer.from(got.data!).toString(), version: got.stat.version }
      }
      expect(nodes).toEqual(modelAt(writes, zxid))
      await reader.close()
    },
    isLong ? 1_800_000 : 120_000,
  )
})
