import { cpSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { describeWith } from './harness/requirements.ts'
import { bytes, openAcl } from './harness/bytes.ts'
import { Client, createBody, multiBody, ErrorReply } from './harness/client.ts'
import { dumpTree } from './harness/dump.ts'
import { op } from './harness/opcodes.ts'
import {
  apacheClassPath,
  serverUnderTest,
  reference,
  run,
  scratch,
  Server,
  type Kind,
} from './harness/servers.ts'
import { bob, part, ttlBody } from './differential/requests.ts'

const config = {
  extendedTypesEnabled: 'true',
  // Apache ZooKeeper resumes the sessions of Zabra only if it can compute their passwords.
  sessionSecretEnabled: 'false',
  'DigestAuthenticationProvider.superDigest': 'super:lK75jTNcA+U9vtVEw5vB51mj/w4=',
}

interface Written {
  readonly dump: Record<string, string>
  /** A session that is open when the server ends. */
  readonly session: { readonly id: bigint; readonly password: Buffer }
}

/** Writes every kind of transaction, and leaves one session with ephemeral nodes open. */
async function write(server: Server, label: string): Promise<Written> {
  const client = await Client.connect(server.port, { timeoutMs: 40_000 })
  const passing = await Client.connect(server.port)
  await client.addAuth('digest', 'super:secret')
  await client.addAuth('digest', 'bob:pw')
  const root = `/${label}`
  await client.create(root, 'root')
  await client.create(`${root}/null`, null)
  await client.create(`${root}/empty`, '')
  await client.create(`${root}/large`, Buffer.alloc(100_000, 7))
  await client.create(`${root}/ä漢`, 'names')
  await client.create(`${root}/secret`, 's', 0, [
    { perms: 31, scheme: 'digest', id: bob },
    { perms: 1, scheme: 'ip', id: '10.0.0.0/8' },
  ])
  for (let index = 0; index < 5; index++) await client.create(`${root}/s-`, String(index), 2)
  await client.delete(`${root}/s-0000000006`)
  await client.set(root, 'changed')
  await client.set(root, null)
  await client.set(root, 'again', 2)
  await client.ok(op.setACL, setAclBody(`${root}/empty`), 'setACL')
  await client.ok(op.createContainer, createBody(`${root}/container`, 'c', 4), 'container')
  await client.create(`${root}/container/child`)
  await client.ok(op.createTTL, ttlBody(`${root}/ttl`, 5, 3_600_000n), 'TTL')
  await client.ok(op.createTTL, ttlBody(`${root}/ttl-`, 6, 3_600_000n), 'TTL')
  const parts = [
    part.create(`${root}/m`),
    part.create(`${root}/m/a`),
    part.set(`${root}/m`, 0),
    part.create(`${root}/m/b`, 2),
    part.delete(`${root}/m/a`),
    part.check(root),
  ]
  await client.ok(op.multi, multiBody(parts), 'multi')
  await client.ok(op.multi, multiBody([part.create(`${root}/never`), part.check(root, 99)]), 'failing multi')
  await client.ok(op.multi, multiBody([]), 'empty multi')
  await client.create(root).catch(expectRefusal)
  await client.create(`/zookeeper/quota${root}`)
  await client.create(`/zookeeper/quota${root}/zookeeper_limits`, 'count=1000,bytes=-1')
  await client.create(`/zookeeper/quota${root}/zookeeper_stats`, 'count=0,bytes=0')
  await client.create(`${root}/in-quota`, '12345')
  await client.create(`${root}/e1`, 'mine', 1)
  await client.create(`${root}/e2-`, 'mine', 3)
  await passing.create(`${root}/passing`, '', 1)
  await passing.close()
  const dump = await dumpTree(client)
  client.drop()
  return { dump, session: client.session }
}

const setAclBody = (path: string): Buffer =>
  bytes()
    .str(path)
    .acl([
      { perms: 5, scheme: 'world', id: 'anyone' },
      { perms: 16, scheme: 'auth', id: '' },
    ])
    .int(-1)
    .done()

const expectRefusal = (error: unknown): void => {
  if (!(error instanceof ErrorReply)) throw error
}

/** Starts a server on a copy of a data directory and checks the tree, the open session and the sequence counters. */
async function expectServed(reader: Kind, folder: string, written: readonly Written[]): Promise<void> {
  const last = written.at(-1)!
  const copy = scratch('copy')
  cpSync(folder, copy, { recursive: true })
  await using server = await Server.start({ kind: reader, config, dataDir: copy })
  const client = await Client.connect(server.port)
  await client.addAuth('digest', 'super:secret')
  expect(await dumpTree(client)).toEqual(last.dump)

  const resumed = await Client.connect(server.port, { resume: last.session })
  expect(resumed.session.id).toBe(last.session.id)
  const mine = (await resumed.ok(op.getEphemerals, bytes().str('/').done(), 'ephemerals')).body.strings()
  expect(mine?.length).toBe(2)
  await resumed.close()
  for (const path of mine ?? []) expect(await client.exists(path!)).toBeUndefined()

  const name = Object.keys(last.dump).find((path) => path.endsWith('/s-0000000005'))!
  expect(await client.create(name.slice(0, -10), '', 2, openAcl)).toBe(nextName(last.dump, name))
  await client.close()
}

/** Returns the name of the next sequential child, by the parent's creation counter. */
function nextName(dump: Record<string, string>, child: string): string {
  const parent = child.slice(0, child.lastIndexOf('/'))
  const { cversion, numChildren } = JSON.parse(dump[parent]!.replace(/^.*?\] /, '')) as {
    cversion: number
    numChildren: number
  }
  return `${child.slice(0, -10)}${String((cversion + numChildren) / 2).padStart(10, '0')}`
}

const versionFiles = (folder: string): string[] =>
  readdirSync(join(folder, 'version-2')).map((name) => join(folder, 'version-2', name))

async function expectToolsRead(folder: string): Promise<void> {
  for (const file of versionFiles(folder)) {
    const tool = file.includes('/log.')
      ? ['org.apache.zookeeper.server.persistence.TxnLogToolkit', '-d', file]
      : file.includes('/snapshot.')
        ? ['org.apache.zookeeper.server.SnapshotFormatter', file]
        : undefined
    if (!tool || statSync(file).size === 0) continue
    const { code, output } = await run('java', [
      '-Dzookeeper.extendedTypesEnabled=true',
      '-cp',
      apacheClassPath,
      ...tool,
    ])
    expect({ file, code }).toEqual({ file, code: 0 })
    expect(output).not.toMatch(/Exception|CRC ERROR|CRC FIXED|Invalid|corrupt/i)
  }
}

type Ending = 'killed' | 'stopped' | 'restarted with a snapshot'

/** Creates a data directory with one kind of server and leaves it in a given state. */
async function folderOf(kind: Kind, ending: Ending): Promise<{ folder: string; written: Written[] }> {
  const folder = scratch('written')
  const snapshots = ending === 'restarted with a snapshot' ? { snapCount: 20, snapTreeShare: 0 } : {}
  const server = await Server.start({ kind, dataDir: folder, config: { ...config, ...snapshots } })
  const written = [await write(server, 'first')]
  if (ending === 'restarted with a snapshot') {
    await server.kill()
    await server.start()
    const before = await Client.connect(server.port, { resume: written[0]!.session })
    await before.close()
    written.push(await write(server, 'second'))
  }
  await (ending === 'stopped' ? server.stop() : server.kill())
  return { folder, written }
}

const endings: readonly Ending[] = ['killed', 'stopped', 'restarted with a snapshot']

describeWith(['apache'], 'data directories', () => {
  const folders = new Map<Ending, Promise<{ folder: string; written: Written[] }>>()
  const written = (ending: Ending): Promise<{ folder: string; written: Written[] }> => {
    const known = folders.get(ending) ?? folderOf(serverUnderTest, ending)
    folders.set(ending, known)
    return known
  }

  afterAll(() => folders.clear())

  it.each(endings)(
    'Apache ZooKeeper serves the same tree from a directory of Zabra that was %s',
    async (ending) => {
      const { folder, written: all } = await written(ending)
      await expectServed(reference, folder, all)
    },
  )

  it.each(endings)("Apache ZooKeeper's tools read a directory of Zabra that was %s", async (ending) => {
    const { folder } = await written(ending)
    expect(versionFiles(folder).some((file) => file.includes('/log.'))).toBe(true)
    if (ending === 'restarted with a snapshot') {
      expect(versionFiles(folder).filter((file) => file.includes('/snapshot.')).length).toBeGreaterThan(1)
    }
    await expectToolsRead(folder)
  })

  it.each(endings)(
    'Zabra serves the same tree from a directory of Apache ZooKeeper that was %s',
    async (ending) => {
      const { folder, written: all } = await folderOf(reference, ending)
      await expectServed(serverUnderTest, folder, all)
    },
  )

  it.each(endings)('Zabra serves the same tree from a directory of Zabra that was %s', async (ending) => {
    const { folder, written: all } = await written(ending)
    await expectServed(serverUnderTest, folder, all)
  })

  it('Zabra serves non-ASCII names that Apache ZooKeeper digested in another encoding, and logs that digests are not checked', async () => {
    const folder = scratch('posix')
    const apache = await Server.start({ kind: reference, dataDir: folder, config, locale: 'POSIX' })
    const written = await write(apache, 'posix')
    await apache.kill()
    await using server = await Server.start({ kind: serverUnderTest, config, dataDir: folder })
    const client = await Client.connect(server.port)
    await client.addAuth('digest', 'super:secret')
    expect(await dumpTree(client)).toEqual(written.dump)
    await client.close()
    expect(server.output).toContain('Digests are not checked')
  })

  it('a data directory moves between Apache ZooKeeper and Zabra in turn and keeps its tree and sessions', async () => {
    const folder = scratch('journey')
    let last: Written | undefined
    for (const [stage, kind] of [reference, serverUnderTest, reference, serverUnderTest].entries()) {
      const server = await Server.start({
        kind,
        dataDir: folder,
        config: { ...config, snapCount: 30, snapTreeShare: 0 },
      })
      if (last) {
        const client = await Client.connect(server.port)
        await client.addAuth('digest', 'super:secret')
        expect(await dumpTree(client), `stage ${stage}`).toEqual(last.dump)
        await client.close()
        const resumed = await Client.connect(server.port, { resume: last.session })
        await resumed.close()
      }
      last = await write(server, `stage${stage}`)
      await server.kill()
    }
  })
})
