import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ExitCode, Failure } from '../exit-codes.ts'
import { setupStage, stage } from '../testing/cli-fixture.ts'
import { idsOf } from '../testing/findings.ts'
import { examineServers, type AdminPort } from './examine-servers.ts'

setupStage({ adminPort: 0 })

const tree = {
  largestNode: { path: '/', bytes: 0 },
  mostChildren: { path: '/', children: 0 },
  sequences: { count: 0, first: [] },
  quotas: { count: 0, first: [] },
  openSecrets: { count: 0, first: [] },
  rootPermissions: '',
  ephemerals: [],
}
const cluster = {
  failuresLeft: 1,
  members: [{ id: 1, state: 'leader', softwareVersion: '1', problem: null }],
}

/** An HTTP port that answers as given; an error is thrown. */
function portOf(host: string, answers: Readonly<Record<string, unknown>>, aheadMs = 0): AdminPort {
  const answer = (path: string): unknown => {
    const found = answers[path]
    if (found instanceof Error) throw found
    return found
  }
  const self = { ready: true, checks: [], id: host.length, uptimeMs: 1000, settings: {} }
  const all = { '/api/v1/self': self, '/api/v1/cluster': cluster, '/api/v1/findings': tree, '/metrics': '' }
  answers = { ...all, ...answers }
  return {
    url: new URL(`http://${host}:8080`),
    json: async <T>(_: string, path: string) => answer(path) as T,
    request: async (_, path) => {
      const text = answer(path) as string
      const date = new Date(Date.now() + aheadMs).toUTCString()
      return {
        status: 200,
        headers: { date },
        chunks: (async function* () {
          yield new TextEncoder().encode(text)
        })(),
      }
    },
  }
}

describe('examineServers', () => {
  const refused = new Failure('connection refused', ExitCode.connection)
  const forbidden = new Failure('The role view is missing', ExitCode.noPermission)

  it('finds nothing in sound servers', async () => {
    expect(await idsOf(examineServers([portOf('a', {}), portOf('bb', {})]))).toEqual([])
  })

  it('finds voters that are even in number, or on one host', async () => {
    const members = (...addresses: string[]) =>
      addresses.map((address, index) => ({
        id: index + 1,
        state: index === 0 ? 'leader' : 'follower',
        softwareVersion: '1',
        problem: null,
        participant: true,
        address,
      }))
    for (const [addresses, ids] of [
      [['a:1', 'b:1', 'c:1'], []],
      [['a:1', 'b:1'], ['even-voters']],
      [['a:1', 'a:2|b:3', 'a:4'], ['one-host']],
    ] as const) {
      const answers = { '/api/v1/cluster': { failuresLeft: 1, members: members(...addresses) } }
      expect(await idsOf(examineServers([portOf('x', answers)]))).toEqual(ids)
    }
  })

  it('says that it does not understand an answer in another shape', async () => {
    const odd = portOf('a', { '/api/v1/findings': { largestNode: null } })
    expect(await idsOf(examineServers([odd]))).toEqual(['not-checked'])
  })

  it('finds settings in force with which data and access lists are at risk', async () => {
    const settings = { skipACL: 'true', forceSync: 'false', 'audit.enable': 'false' }
    const self = { ready: true, checks: [], id: 1, settings }
    expect(await idsOf(examineServers([portOf('a', { '/api/v1/self': self })]))).toEqual([
      'skip-acl',
      'no-sync',
      'no-audit',
    ])
  })

  it('goes on behind a server that does not answer, and parts that are refused', async () => {
    const down = portOf('down', { '/api/v1/self': refused })
    const closed = portOf('closed', { '/api/v1/findings': forbidden, '/metrics': 'zabra_zxid_lag 20000\n' })
    expect(await idsOf(examineServers([down, closed]))).toEqual(['no-answer', 'lag', 'not-checked'])
  })

  it('finds two servers with one id, settings that differ, and a clock that differs from that of this machine', async () => {
    const self = (tickTime: string) => ({ ready: true, checks: [], id: 1, settings: { tickTime } })
    const [a, b] = ['2000', '3000'].map((tick, index) =>
      portOf(`host${index}`, { '/api/v1/self': self(tick) }),
    )
    expect(await idsOf(examineServers([a!, b!]))).toEqual(['same-id', 'members-differ'])
    for (const [aheadMs, ids] of [
      [10_000, ['clock-skew']],
      [-10_000, ['clock-skew']],
      [1000, []],
    ] as const)
      expect(await idsOf(examineServers([portOf('a', {}, aheadMs)]))).toEqual(ids)
  })

  it('reports what all members say of the ensemble once', async () => {
    const members = [
      ...cluster.members,
      { id: 2, state: 'unknown', softwareVersion: null, problem: 'refused' },
    ]
    const answers = { '/api/v1/cluster': { ...cluster, members } }
    expect(await idsOf(examineServers([portOf('a', answers), portOf('bb', answers)]))).toEqual([
      'member-down',
    ])
  })
})

describe('zabra doctor --admin', () => {
  it('names what is unwise in the tree of a running server, without its data', async () => {
    await stage.createNodes({ '/db-password': 'hunter2' })
    const { code, out } = await stage.run(['doctor', '--json'])
    const found = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: string; evidence: string })
    expect(found.find(({ id }) => id === 'open-secret')!.evidence).toContain('/db-password (anyone reads it)')
    expect(found.map(({ id }) => id)).toContain('open-root')
    expect(found.map(({ id }) => id)).not.toContain('not-checked')
    expect(out).not.toContain('hunter2')
    expect(code).toBe(2)
    await stage.zk.delete('/db-password')
    expect((await stage.run(['doctor', '--json'])).out).not.toContain('open-secret')
  })
})

describe('zabra doctor --data', () => {
  it('measures the disk when it is asked to beside a server, and else says that it has not', async () => {
    const data = join(stage.folder, 'data')
    const found = async (...argv: string[]) =>
      (await stage.run(['doctor', '--data', data, ...argv, '--json'], { environment: { ZABRA_ADMIN: '' } }))
        .out
    expect(await found()).toContain('"sync-not-measured"')
    expect(await found('--sync-seconds', '0')).not.toContain('sync-')
  })
})

describe('zabra doctor --config', () => {
  it('compares the files of members, and finds in each what a server would', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'zabra-doctor-'))
    const lines = [
      'initLimit=10',
      'syncLimit=5',
      `dataDir=${folder}`,
      'audit.enable=true',
      'standaloneEnabled=false',
    ]
    const write = (name: string, ...more: string[]): string => {
      const file = join(folder, name)
      writeFileSync(file, [...lines, 'server.1=localhost:1:2;127.0.0.1:3', ...more].join('\n'))
      return file
    }
    writeFileSync(join(folder, 'myid'), '1')
    const own = write('own.cfg', 'tickTime=2000')
    const environment = { ZABRA_ADMIN: '' }
    const differ = await stage.run(['doctor', '--config', own, write('b.cfg', 'tickTime=3000'), '--json'], {
      environment,
    })
    expect(differ.out).toContain('"members-differ"')
    const same = await stage.run(['doctor', '--config', own, write('c.cfg', 'tickTime=2000'), '--json'], {
      environment,
    })
    expect(same.out).not.toContain('"members-differ"')
    expect(same.out).not.toContain('"severity":"error"')
    const tokens = write('d.cfg', 'tickTime=2000', `admin.tokensFile=${folder}/none`)
    const missing = await stage.run(['doctor', '--config', tokens], { environment })
    expect(missing).toMatchObject({
      code: 2,
      out: expect.stringContaining('error configuration: ') as unknown,
    })
    expect(missing.out).toContain('admin.tokensFile: ')
  })
})
