import { adler32, OpCode } from '@zabra/protocol'
import { DiskError, MemoryDisk, SeededRandom } from '@zabra/runtime'
import { nodeCompression, nodeCryptography, NodeDisk } from '@zabra/runtime/node'
import { FolderTarget, writeBackup, writeVerification, type BackupSource } from '@zabra/server/backup'
import { loadSettings, parseConfiguration } from '@zabra/server/settings'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { setupStage, stage } from '../testing/cli-fixture.ts'
import { idsOf } from '../testing/findings.ts'
import { checkBackups } from './check-backups.ts'
import { checkConfiguration } from './check-configuration.ts'
import { checkData, type DataTools } from './check-data.ts'
import { checkMachine } from './check-machine.ts'
import { coresOf, timeServices } from './machine-facts.ts'
import { checkAccessLists, checkMigration, startVariables } from './check-migration.ts'
import { checkNetwork, type NetworkTools } from './check-network.ts'
import { checkRunning, type ClusterAnswer } from './check-running.ts'
import { examineConfigurations } from './examine.ts'
import { FINDINGS, type Finding } from './finding.ts'

const docs = new URL('../../../../docs/', import.meta.url)
const readPage = (name: string): string => readFileSync(new URL(name, docs), 'utf8')

/** Returns a log with one transaction, the end of a session (disk-format 4.2). */
function logWith(zxid: number): Uint8Array {
  const payload = Buffer.alloc(32)
  payload.writeBigInt64BE(BigInt(zxid), 12)
  payload.writeInt32BE(OpCode.closeSession, 28)
  const log = Buffer.alloc(16 + 12 + payload.length + 1)
  log.write('ZKLG')
  log.writeInt32BE(2, 4)
  log.writeBigInt64BE(BigInt(adler32(payload)), 16)
  log.writeInt32BE(payload.length, 24)
  payload.copy(log, 28)
  log[60] = 0x42
  return new Uint8Array(log)
}

describe('docs/doctor.md', () => {
  const rows = new Map(
    [...readPage('doctor.md').matchAll(/^\| `([a-z-]+)` \| (\w+) \| [^|]+ \| [^|]+ \| (.*) \|$/gm)].map(
      ([, id, severity, read]) => [id!, [severity, /\((.*)\)/.exec(read!)?.[1] ?? 'doctor.md']],
    ),
  )

  it('has each finding with its severity and its page, and no other', () => {
    expect(Object.fromEntries(rows)).toEqual(FINDINGS)
  })

  it('names sections that exist', () => {
    for (const [page, anchor] of [...rows.values()].map(([, link]) => link!.split('#'))) {
      const headings = [...readPage(page!).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading!)
      const anchors = headings.map((heading) => heading.toLowerCase().replaceAll(' ', '-'))
      if (anchor !== undefined) expect(anchors).toContain(anchor)
    }
  })

  it('has no finding that no test provokes', () => {
    const tests = readdirSync(import.meta.dirname)
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) => readFileSync(join(import.meta.dirname, name), 'utf8'))
      .join('\n')
    const isProvoked = (id: string): boolean =>
      [`'${id}'`, `"${id}"`, ` ${id}: `].some((text) => tests.includes(text))
    expect(Object.keys(FINDINGS).filter((id) => !isProvoked(id))).toEqual([])
  })
})

setupStage()
let snapshot: { file: string; bytes: Uint8Array }

beforeAll(async () => {
  await stage.server.snapshot()
  const folder = join(stage.folder, 'data', 'version-2')
  const file = readdirSync(folder).find((name) => name.startsWith('snapshot.'))!
  snapshot = { file, bytes: new Uint8Array(readFileSync(join(folder, file))) }
})

describe('checkConfiguration', () => {
  const servers = (hosts: readonly string[]): string =>
    hosts.map((host, index) => `server.${index + 1}=${host}:2888:3888;2181`).join('\n')
  const secure = ['sslQuorum=true', 'ssl.quorum.keyStore.location=/k', 'ssl.quorum.trustStore.location=/t']
  const sound =
    'tickTime=2000\ninitLimit=10\nsyncLimit=5\naudit.enable=true\nsecureClientPort=2281\n' +
    'ssl.keyStore.location=/k\nssl.trustStore.location=/t\n' +
    `${secure.join('\n')}\n${servers(['a', 'b', 'c']).replaceAll(';2181', '')}`
  const check = (text: string) => {
    const files = {
      read: (path: string) => (path.endsWith('/myid') ? '1' : undefined),
      resolve: (path: string) => path,
    }
    const base = `dataDir=/data\ndataLogDir=/logs\nstandaloneEnabled=true\n${text}`
    return idsOf(
      checkConfiguration('zoo.cfg', loadSettings({ file: { name: 'zoo.cfg', text: base }, files })),
    )
  }

  it('finds nothing in three voters on three hosts, with TLS and an audit', async () => {
    expect(await check(sound)).toEqual([])
  })

  it.each([
    [servers(['a', 'b', 'c', 'd']), 'even-voters'],
    ['server.1=a:1:2;3\nserver.2=a:4:5;6\nserver.3=a:7:8;9', 'one-host'],
    ['clientPort=2181\nskipACL=yes', 'skip-acl'],
    ['clientPort=2181\nforceSync=no', 'no-sync'],
    [
      'clientPort=2181\nDigestAuthenticationProvider.superDigest=super:xQJmxLMiHGwaqBvst5y6rkB6HQs=',
      'known-password',
    ],
    ['clientPort=2181\ndataLogDir=/data', 'shared-disk'],
    ['clientPort=2181\nadmin.serverAddress=0.0.0.0\nadmin.anonymous=view', 'open-admin'],
    [`${sound}\nclientPort=2181`, 'plain-clients'],
    ['clientPort=2181\nsasl.digest.users=ada:changeit', 'known-password'],
    [sound.replace('sslQuorum=true', 'sslQuorum=false'), 'plain-members'],
    [`${sound}\nportUnification=true\nadmin.serverAddress=0.0.0.0`, 'plain-admin'],
    [sound.replace('audit.enable=true', ''), 'no-audit'],
    ['clientPort=many', 'configuration'],
    ['clientPort=2181\nadmin.httpVersion=11', 'configuration-warning'],
  ])('%j has the finding %s', async (text, id) => {
    expect(await check(text)).toContain(id)
  })
})

describe('examineConfigurations', () => {
  it.skipIf(process.platform === 'win32')(
    'finds a configuration file with secrets that other users may read, without the secrets',
    async () => {
      const file = join(mkdtempSync(join(tmpdir(), 'zabra-doctor-')), 'zoo.cfg')
      writeFileSync(
        file,
        `clientPort=2181\ndataDir=/data\nDigestAuthenticationProvider.superDigest=super:xQJmxLMiHGwaqBvst5y6rkB6HQ4=\n`,
      )
      chmodSync(file, 0o644)
      const found: Finding[] = []
      for await (const one of examineConfigurations({ disk: new NodeDisk() }, [file])) found.push(one)
      expect(found.find(({ id }) => id === 'secret-file')).toMatchObject({
        where: file,
        evidence: expect.stringMatching(
          /^DigestAuthenticationProvider\.superDigest: its mode is 644, .*all users may read it$/,
        ),
      })
      expect(JSON.stringify(found)).not.toContain('xQJmx')
    },
  )

  it.skipIf(process.platform === 'win32')(
    'finds files with secrets that other users may read or write, with the command that mends it',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'zabra-doctor-'))
      const [file, tokens, secret] = ['zoo.cfg', 'tokens', 'secret'].map((name) => join(folder, name))
      writeFileSync(
        file!,
        `clientPort=2181\ndataDir=${folder}\nadmin.tokensFile=${tokens}\nsessionSecretFile=${secret}\n`,
      )
      writeFileSync(tokens!, `ci:view:${'0'.repeat(64)}\n`)
      writeFileSync(secret!, 'x'.repeat(32), { mode: 0o600 })
      chmodSync(tokens!, 0o664)
      const found: Finding[] = []
      for await (const one of examineConfigurations({ disk: new NodeDisk() }, [file!]))
        if (one.id === 'secret-file') found.push(one)
      expect(found).toMatchObject([
        {
          id: 'secret-file',
          where: tokens,
          evidence: expect.stringMatching(
            /^admin\.tokensFile: its mode is 664, its group may .*write it, all users may read it$/,
          ),
          remedy: `Run chmod ${process.getuid!() === 0 ? '640' : '600'} ${tokens} as its owner.`,
        },
      ])
    },
  )
})

describe('checkMachine', () => {
  const sound = {
    maxOpenFiles: 65_536,
    hugePages: 'always [madvise] never',
    swaps: 'Filename Type Size Used Priority\n/swap file 100 0 -2\n',
    backlog: '4096\n',
    cores: 2,
    timeServices: new Map<string, boolean | undefined>([['systemd-timesyncd', true]]),
  }

  it('finds nothing on a sound machine, and no more than an unknown clock where nothing can be read', async () => {
    expect(await idsOf(checkMachine(sound))).toEqual([])
    const unknown = { maxOpenFiles: undefined, hugePages: undefined, swaps: undefined, backlog: undefined }
    const none = { ...unknown, cores: undefined, timeServices: new Map<string, undefined>() }
    expect(await idsOf(checkMachine(none))).toEqual(['clock-not-known'])
  })

  it.each([
    [{ maxOpenFiles: 1024 }, 'open-files'],
    [{ hugePages: '[always] madvise never' }, 'huge-pages'],
    [{ swaps: 'Filename Type Size Used Priority\n/swap file 100 5 -2\n' }, 'swap'],
    [{ backlog: '128\n' }, 'backlog'],
    [{ cores: 1.5 }, 'few-cores'],
    [{ timeServices: new Map([['systemd-timesyncd', false]]) }, 'clock-not-set'],
    [{ timeServices: new Map([['chrony', undefined]]) }, 'clock-not-known'],
  ])('%j is the finding %s', async (facts, id) => {
    expect(await idsOf(checkMachine({ ...sound, ...facts }))).toEqual([id])
  })
})

describe('the facts of a machine', () => {
  it('are the programs that set the clock, by their files', () => {
    const found = (...paths: string[]) => [...timeServices((path) => paths.includes(path))]
    const timesync = '/run/systemd/timesync'
    expect(found()).toEqual([])
    expect(found(timesync)).toEqual([['systemd-timesyncd', false]])
    expect(found(timesync, `${timesync}/synchronized`)).toEqual([['systemd-timesyncd', true]])
    expect(found('/run/ntpd.pid', '/run/chronyd.pid')).toEqual([
      ['chrony', undefined],
      ['ntpd', undefined],
    ])
  })

  it('are the cores under the limit of the control group', () => {
    expect(
      [undefined, 'max 100000\n', '150000 100000\n', '900000 100000', '?'].map((limit) => coresOf(limit, 4)),
    ).toEqual([4, 4, 1.5, 4, 4])
  })
})

describe('checkData', () => {
  const check = (disk: MemoryDisk, mounts = '/dev/sda / ext4 rw 0 0') =>
    idsOf(checkData('/data', '/data', { disk, compression: nodeCompression, mounts }))
  const withSnapshot = (): MemoryDisk => {
    const disk = new MemoryDisk()
    disk.putFile(`/data/version-2/${snapshot.file}`, snapshot.bytes)
    return disk
  }

  it('finds nothing in sound files', async () => expect(await check(withSnapshot())).toEqual([]))

  it('finds nothing in files that a server removes meanwhile', async () => {
    const disk = withSnapshot()
    disk.putFile('/data/version-2/log.100000001', logWith(0x1_0000_0001))
    const open = disk.openRead.bind(disk)
    disk.openRead = async (path) => {
      await disk.remove(path)
      return open(path)
    }
    expect(await check(disk)).toEqual([])
    expect(await disk.list('/data/version-2')).toEqual([])
  })

  const checkWith = (disk: MemoryDisk, tools: Partial<DataTools>, logs = '/data') =>
    idsOf(checkData('/data', logs, { disk, compression: nodeCompression, mounts: undefined, ...tools }))

  it('finds mounts that lose writes or take none', async () => {
    expect(await check(withSnapshot(), '/dev/sda / ext4 rw,nobarrier 0 0')).toEqual(['no-barrier'])
    expect(await check(withSnapshot(), '/dev/sda /data ext4 rw,barrier=0 0 0')).toEqual(['no-barrier'])
    expect(await check(withSnapshot(), '/dev/sda /data ext4 ro,relatime 0 0')).toEqual(['read-only-disk'])
    expect(await check(withSnapshot(), '/dev/sda /other ext4 ro 0 0\n/dev/sdb / ext4 rw 0 0')).toEqual([])
  })

  it('finds one device for both folders, and files in the folder of the others', async () => {
    const disk = withSnapshot()
    disk.putFile('/logs/version-2/log.100000001', logWith(0x1_0000_0001))
    const deviceOf = async () => 7
    expect(await checkWith(disk, { deviceOf }, '/logs')).toEqual(['one-device'])
    expect(await checkWith(disk, { deviceOf: async (path) => Number(path === '/logs') }, '/logs')).toEqual([])
    expect(await checkWith(disk, { deviceOf: async () => undefined }, '/logs')).toEqual([])
    disk.putFile('/data/version-2/log.1', logWith(1))
    disk.putFile(`/logs/version-2/${snapshot.file}`, snapshot.bytes)
    expect(await checkWith(disk, {}, '/logs')).toEqual(['mixed-folders', 'mixed-folders'])
  })

  it('finds epoch files that do not fit, and files of others', async () => {
    const disk = withSnapshot()
    const put = (name: string, text: string) =>
      disk.putFile(`/data/version-2/${name}`, new TextEncoder().encode(text))
    put('acceptedEpoch', '3')
    put('currentEpoch', '3')
    for (const name of ['zabra.cluster', 'distrusted', 'updatingEpoch', 'zabra-doctor.tmp']) put(name, '')
    expect(await check(disk)).toEqual([])
    put('currentEpoch', '4')
    expect(await check(disk)).toEqual(['epoch-files'])
    put('currentEpoch', 'four')
    expect(await check(disk)).toEqual(['epoch-files'])
    put('currentEpoch', '3')
    put('notes.txt', '')
    expect(await check(disk)).toEqual(['foreign-files'])
  })

  it('finds the server that runs on a folder, and not one that has ended', async () => {
    const disk = withSnapshot()
    disk.putFile('/data/zabra.lock', new TextEncoder().encode('42 token began-1\n'))
    expect(await checkWith(disk, { processIdentity: () => 'began-1' })).toEqual(['in-use'])
    expect(await checkWith(disk, { processIdentity: () => 'began-2' })).toEqual([])
    expect(await checkWith(disk, { processIdentity: () => undefined })).toEqual([])
  })

  it('finds a disk that is full in days, by how the log has grown, and memory below 2.5 times the tree', async () => {
    const day = 86_400_000
    const disk = withSnapshot()
    for (const zxid of [1, 2, 3])
      disk.putFile(`/data/version-2/log.10000000${zxid}`, logWith(0x1_0000_0000 + zxid))
    disk.modifiedAt = async (path) => (path.endsWith('1') ? 0 : day)
    // Two logs of 61 bytes in a day.
    disk.freeBytes = 2 ** 31
    disk.size = async (path) => (path.includes('log.') ? 2 ** 29 : snapshot.bytes.length)
    expect(await checkWith(disk, { now: day })).toEqual(['disk-days'])
    expect(await checkWith(disk, { now: day / 48 })).toEqual([])
    disk.freeBytes = 2 ** 40
    expect(await checkWith(disk, { now: day })).toEqual([])
    const { length } = snapshot.bytes
    expect(await checkWith(disk, { memoryLimit: 2 * length })).toEqual(['little-memory'])
    expect(await checkWith(disk, { memoryLimit: 3 * length })).toEqual([])
  })

  it('finds missing folders, network disks, full disks, damage, files that are not purged, and a finalized level', async () => {
    expect(await check(new MemoryDisk())).toEqual(['no-data'])
    expect(await check(withSnapshot(), '/dev/sda / ext4 rw 0 0\nnas:/x /data nfs4 rw 0 0')).toEqual([
      'network-disk',
    ])
    const full = withSnapshot()
    full.freeBytes = 1000
    expect(await check(full)).toEqual(['disk-full'])
    const damaged = withSnapshot()
    const bytes = snapshot.bytes.slice()
    bytes[40]! ^= 1
    damaged.putFile(`/data/version-2/${snapshot.file}`, bytes)
    expect(await check(damaged)).toEqual(['snapshot'])
    const broken = withSnapshot()
    broken.putFile('/data/version-2/log.ffffff', new Uint8Array(4096).fill(7))
    expect(await check(broken)).toEqual(['log'])
    const nearEnd = withSnapshot()
    nearEnd.putFile('/data/version-2/log.1f0000000', logWith(0x1_f000_0000))
    expect(await check(nearEnd)).toEqual(['zxid-counter'])
    const long = withSnapshot()
    long.putFile('/data/version-2/log.100000001', logWith(0x1_0000_0001))
    expect(await check(long)).toEqual([])
    const tools = { disk: long, compression: nodeCompression, mounts: undefined, longLogBytes: 50 }
    expect(await idsOf(checkData('/data', '/data', tools))).toEqual(['long-log'])
    for (const [text, id] of [
      ['1\n', 'finalized'],
      ['0 proposed 1\n', 'finalized'],
      ['?', 'level-file'],
    ] as const) {
      const leveled = withSnapshot()
      leveled.putFile('/data/version-2/zabra.level', new TextEncoder().encode(text))
      expect(await check(leveled)).toEqual([id])
    }
    const many = withSnapshot()
    for (let i = 0; i < 21; i++) many.putFile(`/data/version-2/snapshot.${i}`, snapshot.bytes)
    expect(await check(many)).toContain('no-purge')
  })
})

describe('checkNetwork', () => {
  const configuration = parseConfiguration('server.1=a:1:2;3\nserver.2=b:1:2;3')
  const tools: NetworkTools = {
    resolve: async () => ['10.0.0.1'],
    connect: async () => 1,
    interfaceTo: async () => ({ name: 'eth0', mtu: 1500 }),
  }
  const check = (changes: Partial<typeof tools>) =>
    idsOf(checkNetwork('zoo.cfg', configuration, 1, { ...tools, ...changes }))
  const fail = async (): Promise<never> => {
    throw new Error('no answer')
  }
  const refuse = async (): Promise<never> => {
    throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
  }

  it('finds names without an address, ports that accept nothing, and members far away', async () => {
    expect(await check({})).toEqual([])
    expect(await check({ resolve: fail })).toEqual(['name', 'name'])
    expect(await check({ connect: fail })).toEqual(['unreachable'])
    expect(await check({ connect: refuse })).toEqual(['unreachable'])
    expect(await check({ connect: async () => 80 })).toEqual(['far-member'])
    let calls = 0
    expect(await check({ connect: async () => (calls++ === 1 ? 2 : 80) })).toEqual([])
  })

  it('finds an interface to members whose packets are longer than usual, once, and none to this machine', async () => {
    const interfaceTo = async () => ({ name: 'eth0', mtu: 9000 })
    const three = parseConfiguration('server.1=zk1:1:2;3\nserver.2=zk2:1:2;3\nserver.3=zk3:1:2;3')
    const found: Finding[] = []
    for await (const one of checkNetwork('zoo.cfg', three, 1, { ...tools, interfaceTo })) found.push(one)
    expect(found).toMatchObject([{ id: 'long-packets', remedy: expect.stringContaining('-s 8972 zk2') }])
    expect(await check({ interfaceTo: async () => undefined })).toEqual([])
    expect(await check({ interfaceTo, resolve: async () => ['127.0.0.1'] })).not.toContain('long-packets')
  })

  it('finds names that are the machine itself here', async () => {
    const resolve = async () => ['127.0.1.1']
    expect(await check({ resolve })).toEqual(['name-loopback', 'name-loopback'])
    const local = parseConfiguration('server.1=localhost:1:2;3\nserver.2=127.0.0.1:4:5;6')
    expect(await idsOf(checkNetwork('zoo.cfg', local, 1, { ...tools, resolve }))).toEqual([])
  })

  it('takes a quorum port that refuses for that of a follower, and one that does not answer for closed', async () => {
    const quorumPort = (answer: () => Promise<never>) => (_: string, port: number) =>
      port === 1 ? answer() : Promise.resolve(1)
    for (const [answer, ids] of [
      [refuse, []],
      [fail, ['unreachable']],
    ] as const)
      expect(
        await idsOf(checkNetwork('zoo.cfg', configuration, 1, { ...tools, connect: quorumPort(answer) })),
      ).toEqual(ids)
  })
})

describe('checkRunning', () => {
  const member = (id: number, changes = {}) => ({
    id,
    state: 'follower',
    softwareVersion: '1',
    problem: null,
    ...changes,
  })
  const check = (
    members: readonly ReturnType<typeof member>[],
    failuresLeft: number | null = 1,
    ok = true,
    clusterId: string | null = '0-1',
    features?: ClusterAnswer['features'],
  ) =>
    idsOf(
      checkRunning(
        'zk1',
        { ready: ok, checks: [{ name: 'log', ok, detail: 'x' }] },
        { failuresLeft, members, clusterId, ...(features === undefined ? {} : { features }) },
      ),
    )

  it('finds a server that is not ready, lost members, different versions, and no cluster id', async () => {
    const sound = [member(1), member(2), member(3)]
    expect(await check(sound)).toEqual([])
    expect(await check(sound, 1, false)).toEqual(['not-ready'])
    expect(await check([...sound.slice(1), member(1, { state: 'unknown', problem: 'refused' })], 0)).toEqual([
      'member-down',
      'no-failure-left',
    ])
    expect(await check(sound, -1)).toEqual(['no-quorum'])
    expect(await check(sound, null), 'with groups').toEqual(['no-quorum'])
    expect(await check([...sound.slice(1), member(1, { state: 'leader' })], null)).toEqual([])
    expect(await check([...sound.slice(1), member(1, { softwareVersion: '2' })])).toEqual(['versions'])
    expect(await check(sound, 1, true, null)).toEqual(['cluster-id'])
    const features = { finalized: 0, members: [{ release: 1 }], readyForMs: 1 }
    expect(await check(sound, 1, true, '0-1', features)).toEqual(['not-finalized'])
    for (const other of [{ finalized: 1 }, { readyForMs: null }, { members: null }])
      expect(await check(sound, 1, true, '0-1', { ...features, ...other })).toEqual([])
  })
})

describe('checkBackups', () => {
  it('finds none, old, plain and damaged ones', async () => {
    const disk = new MemoryDisk()
    const store = {
      target: new FolderTarget('/backup', { disk, random: new SeededRandom(2) }),
      cryptography: nodeCryptography,
      random: new SeededRandom(1),
      key: { id: '0'.repeat(16), bytes: new Uint8Array(32) },
    }
    expect(await idsOf(checkBackups(store, 0))).toEqual(['no-backup'])
    const chunks = async function* (bytes: Uint8Array) {
      yield bytes
    }
    const log = new Uint8Array(16)
    new DataView(log.buffer).setUint32(0, 0x5a4b4c47)
    const source: BackupSource = {
      name: 'test',
      takeSnapshot: async () => ({ file: 'snapshot.0', zxid: 0, chunks: chunks(snapshot.bytes) }),
      readLog: async () => ({ upTo: 0, nodes: 4, digest: null, chunks: chunks(log) }),
    }
    const options = { clock: { wall: () => 1000 }, compression: nodeCompression, snapshot: 'always' as const }
    await writeBackup(store, source, options)
    expect(await idsOf(checkBackups(store, 2000))).toEqual(['backup-not-verified'])
    const result = { time: 1500, snapshot: 'manifest/snapshot-00000000000000.json' }
    await writeVerification(store, { ...result, problem: null })
    expect(await idsOf(checkBackups(store, 2000))).toEqual([])
    expect(await idsOf(checkBackups(store, 2000 + 27 * 3_600_000))).toEqual(['backup-old'])
    expect(await idsOf(checkBackups(store, 2000 + 9 * 86_400_000))).toContain('backup-not-verified')
    const list = disk.list.bind(disk)
    disk.list = async (path) => {
      throw new DiskError(`Cannot read ${path}`, 'EACCES', path)
    }
    expect(await idsOf(checkBackups(store, 2000))).toEqual(['backup-target'])
    disk.list = list
    const openRead = disk.openRead.bind(disk)
    disk.openRead = async (path) => {
      if (path.includes('/snapshot/')) throw new DiskError(`Cannot read ${path}`, 'EIO', path)
      return openRead(path)
    }
    expect(await idsOf(checkBackups(store, 2000))).toEqual(['backup-target'])
    disk.openRead = openRead
    await writeVerification(store, { ...result, problem: 'Expected 4 nodes, got 3.' })
    expect(await idsOf(checkBackups(store, 2000))).toEqual(['backup-unusable'])
    await writeVerification(store, { ...result, problem: null })
    const piece = disk.paths().find((path) => path.includes('/snapshot/'))!
    disk.putFile(piece, (await disk.readFile(piece)).fill(1, 40, 50))
    expect(await idsOf(checkBackups(store, 2000))).toEqual(['backup-damaged'])
    await writeBackup({ ...store, key: undefined }, source, options)
    expect(await idsOf(checkBackups(store, 2000))).toEqual(['backup-plain'])
    await writeVerification(store, { ...result, problem: null })
    /** A server whose log begins with the transaction `zxid`, and ends there. */
    const withOne = (zxid: number): BackupSource => ({
      ...source,
      takeSnapshot: async () => ({ file: `snapshot.${zxid}`, zxid, chunks: chunks(snapshot.bytes) }),
      readLog: async (after) =>
        after === zxid - 1
          ? { upTo: zxid, nodes: 4, digest: null, chunks: chunks(logWith(zxid)) }
          : after === zxid
            ? { upTo: zxid, nodes: 4, digest: null, chunks: chunks(log) }
            : undefined,
    })
    await writeBackup(store, withOne(1), options)
    expect(await idsOf(checkBackups(store, 2000))).toEqual([])
    await writeBackup(store, withOne(5), options)
    expect(await idsOf(checkBackups(store, 2000))).toEqual(['backup-gap'])
  })
})

describe('checkMigration', () => {
  const ensemble = 'server.1=a:1:2;3\nserver.2=b:1:2;3\nserver.3=c:1:2;3'
  const check = (text: string, java = '', stores: Record<string, number[]> = {}) => {
    const files = {
      read: (path: string) => (path.endsWith('/myid') ? '1' : undefined),
      resolve: (path: string) => path,
    }
    const environment = startVariables('/conf/zoo.cfg', undefined, (path) =>
      path === '/conf/java.env' ? java : undefined,
    )
    const file = { name: 'zoo.cfg', text: `dataDir=/data\ndataLogDir=/logs\n${text}` }
    const loaded = loadSettings({ file, environment, files })
    return idsOf(
      checkMigration('zoo.cfg', loaded, environment, (path) =>
        stores[path] === undefined ? undefined : new Uint8Array(stores[path]),
      ),
    )
  }

  it('finds nothing in an ensemble without Java matters', async () => {
    expect(await check(ensemble)).toEqual([])
  })

  it('finds a server alone, JMX, the heap, and stores of Java', async () => {
    expect(await check('clientPort=2181')).toEqual(['one-server'])
    expect(await check(ensemble, 'export JVMFLAGS="-Dcom.sun.management.jmxremote.port=9010"')).toEqual([
      'jmx',
    ])
    expect(await check(ensemble, 'JMXPORT=9010\nSERVER_JVMFLAGS="$SERVER_JVMFLAGS -Xmx4g"')).toEqual([
      'jmx',
      'java-heap',
    ])
    const options =
      'JVMFLAGS="-Dzookeeper.DigestAuthenticationProvider.superDigest=super:x= -Djute.maxbuffer=4M"'
    expect(await check(ensemble, options)).toEqual(['java-options'])
    const stores = `${ensemble}\nsecureClientPort=2281\nssl.keyStore.location=/k\nssl.trustStore.location=/t`
    expect(await check(stores, '', { '/k': [0xfe, 0xed, 0xfe, 0xed], '/t': [0x30] })).toEqual(['store-jks'])
    expect(await check(stores, '', { '/k': [0x30] })).toEqual(['store-elsewhere'])
  })

  it('takes Java options as settings, and other ones in their place', () => {
    const read = (): string => 'export JVMFLAGS="-Dzookeeper.skipACL=yes ${MORE}"\n# JMXPORT=1\n'
    expect(startVariables('/conf/zoo.cfg', undefined, read)).toEqual({ JVMFLAGS: '-Dzookeeper.skipACL=yes' })
    expect(startVariables('/conf/zoo.cfg', '-Xmx1g', read)['JVMFLAGS']).toBe('-Xmx1g')
  })
})

describe('zabra doctor --migrate', () => {
  const folder = (): string => mkdtempSync(join(tmpdir(), 'zabra-migrate-'))

  it('reads configuration, Java options and data of Apache ZooKeeper, and prints the steps', async () => {
    const conf = folder()
    const config = join(conf, 'zoo.cfg')
    const lines = ['tickTime=2000', 'initLimit=10', 'syncLimit=5', `dataDir=${join(stage.folder, 'data')}`]
    const members = [1, 2, 3].map((id) => `server.${id}=zk${id}.example:2888:3888;2181`)
    writeFileSync(join(stage.folder, 'data', 'myid'), '1')
    writeFileSync(config, [...lines, ...members, 'largeRequestThreshold=100000'].join('\n'))
    writeFileSync(join(conf, 'java.env'), 'export JVMFLAGS="-Dzookeeper.skipACL=yes"\n')
    await stage.server.snapshot()
    const { code, out } = await stage.run(['doctor', '--migrate', config])
    expect(code).toBe(2)
    expect(out).toContain('error configuration: ')
    expect(out).toContain('largeRequestThreshold')
    writeFileSync(config, [...lines, ...members].join('\n'))
    const { code: next, out: found } = await stage.run(['doctor', '--migrate', config])
    expect(next).toBe(2)
    expect(found).toContain('error skip-acl: ')
    expect(found).toContain('java-options: ')
    expect(found).toContain('with the same JVMFLAGS in its environment: zabra-server')
    expect(found).toMatch(/What to do:\n1\. .*server\.2, server\.3[^]*leader last[^]*zabra-server .*zoo\.cfg/)
    const json = await stage.run(['doctor', '--migrate', config, '--java-options', '', '--json'])
    const last = JSON.parse(json.out.trimEnd().split('\n').at(-1)!) as { steps: string[] }
    expect(last.steps.length).toBeGreaterThan(4)
    expect(json.out).not.toContain('"severity":"error"')
    expect(json.out).not.toContain('data-elsewhere')
  })

  it('gives the address of the page to read, and asks for the machine of the data where there is none', async () => {
    const config = join(folder(), 'zoo.cfg')
    writeFileSync(config, `dataDir=${join(folder(), 'none')}\nclientPort=2181\n`)
    const { out } = await stage.run(['doctor', '--migrate', config])
    expect(out).toMatch(
      /warning data-elsewhere: .*no data is there\n {2}.* \(https:\/\/github\.com\/zabra\/zabra\/blob\/main\/docs\/migrate\.md\)/,
    )
  })

  it('names entries of access lists that mean nothing, or a Kerberos principal', async () => {
    const node = (path: string, scheme: string, id: string) => ({
      path,
      acl: [{ perms: 31, id: { scheme, id } }],
    })
    const nodes = [
      node('/a', 'hosts', 'x'),
      node('/b', 'sasl', 'bob/host@REALM'),
      node('/c', 'world', 'anyone'),
      node('/d', 'sasl', 'bob'),
    ]
    expect(await idsOf(checkAccessLists(nodes))).toEqual(['acl-scheme', 'kerberos-identity'])
    expect(await idsOf(checkAccessLists(nodes.slice(2)))).toEqual([])
  })

  it('refuses --java-options without it', async () => {
    expect((await stage.run(['doctor', '--java-options', '-Xmx1g'])).err).toContain('belongs to --migrate')
  })
})

describe('zabra doctor', () => {
  it('prints what it finds, and exits with 2 for errors', async () => {
    const { code, out } = await stage.run(['doctor', '--data', join(stage.folder, 'none')])
    expect([code, out]).toEqual([2, expect.stringContaining('error no-data: ')])
    const sound = await stage.run(['doctor', '--data', join(stage.folder, 'data'), '--json'])
    expect(sound.out).not.toContain('"severity":"error"')
    expect(sound.out).toContain('"sync-not-measured"')
    expect((await stage.run(['doctor', '--logs', 'x'])).err).toContain('--logs belongs to --data')
    expect((await stage.run(['doctor', '--sync-seconds', '1'])).err).toContain('belongs to --data')
  })
})
