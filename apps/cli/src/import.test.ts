import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { digestId } from '@zabra/protocol'
import { beforeAll, describe, expect, it } from 'vitest'
import { setupStage, stage } from './testing/cli-fixture.ts'

const main = resolve(import.meta.dirname, '../dist/main.js')
const NODES = 12_000
/** Thousands of nodes, several times over, on a machine that may be busy. */
const LIMIT_MS = 240_000

setupStage()
let file: string
beforeAll(async () => {
  file = join(stage.folder, 'big.jsonl')
  const acl = [{ scheme: 'digest', id: 'ada:x', perms: 'cdrwa' }]
  const node = (path: string): string => JSON.stringify({ path, data: 'd', acl })
  const lines = [node('/'), ...Array.from({ length: 30 }, (_, i) => node(`/p${i}`))]
  for (let i = 0; i < NODES; i++) lines.push(node(`/p${i % 30}/n${i}`))
  writeFileSync(file, `${lines.join('\n')}\n`)
})

/** Starts the built program on the large export, and stops it by a signal once nodes are coming. */
async function stopped(signal: NodeJS.Signals, root: string): Promise<{ code: number | null; err: string }> {
  const child = spawn(process.execPath, [main, 'import', file, root], {
    env: { ...process.env, ZABRA_SERVER: stage.address },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let err = ''
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const ended = new Promise<number | null>((done) => child.once('close', done))
  // Nodes come in the order of their paths. This is the third of 30 parents, so that the signal arrives long before the end.
  const watch = await stage.zk.watchOnce(`${root}/p10`, 'exists')
  await Promise.race([watch.fired, ended])
  child.kill(signal)
  return { code: await ended, err }
}

describe.skipIf(!existsSync(main))('an interrupted import (pnpm build first)', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'interrupted by %s deletes what it has created',
    async (signal) => {
      const root = `/stopped-${signal}`
      const { code, err } = await stopped(signal, root)
      expect(code).toBe({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }[signal])
      expect(err).toMatch(/^zabra: rolling back: deleting the \d+ nodes created so far\n$/)
      expect(await stage.zk.exists(root)).toBeUndefined()
    },
    LIMIT_MS,
  )

  it(
    'killed by SIGKILL is completed by the same import, which removes temporary access list entries',
    async () => {
      await stopped('SIGKILL', '/killed')
      const open = await stage.zk.getACL('/killed')
      expect(open.acl).toContainEqual({ perms: 29, scheme: 'ip', id: '127.0.0.1' })
      expect((await stage.zk.getChildren('/killed')).children.length).toBeGreaterThan(0)
      const dry = await stage.run(['import', '--dry-run', file, '/killed'])
      expect(dry.out).toContain('close /killed (access list of an import that was killed)')
      const again = await stage.run(['import', file, '/killed', '--skip'])
      expect(again).toMatchObject({
        code: 0,
        err: expect.stringMatching(/closed [1-9]\d* of an earlier import/),
      })
      await stage.server.snapshot()
      const { out } = await stage.run(['snapshot', join(stage.folder, 'data'), '--path', '/killed'])
      const nodes = out.split('\n').filter((line) => line.startsWith('/killed'))
      expect(nodes).toHaveLength(NODES + 31)
      expect(nodes.filter((line) => !line.endsWith('acl digest:ada:x:cdrwa'))).toEqual([])
    },
    LIMIT_MS,
  )
})

describe('a failing import', () => {
  const node = (path: string, perms = 'cdrwa') =>
    JSON.stringify({ path, data: 'd', acl: [{ scheme: 'world', id: 'anyone', perms }] })

  it('rolls back what it has created and prints the reason', async () => {
    await stage.createNodes({ '/locked': null })
    await stage.zk.setACL('/locked', [{ perms: 1, scheme: 'world', id: 'anyone' }])
    const many = Array.from({ length: 250 }, (_, i) => node(`/a-${i}`))
    const input = `${[...many, node('/locked/in')].join('\n')}\n`
    const { code, err } = await stage.run(['import'], { input })
    expect(code).toBe(7)
    expect(err).toContain('rolling back: deleting the 200 nodes')
    expect(err).toContain('/locked/in')
    expect(await stage.zk.exists('/a-0')).toBeUndefined()
  })

  it('adds no temporary access list entry when its identity may create children already', async () => {
    const acl = [{ scheme: 'digest', id: digestId('ada:secret'), perms: 'cdrwa' }]
    const own = (path: string) => JSON.stringify({ path, data: 'd', acl })
    const input = `${own('/adas')}\n${own('/adas/in')}\n`
    const argv = ['import', '--auth', 'digest:ada:secret']
    expect(await stage.run(argv, { input })).toMatchObject({ code: 0 })
    const log = await stage.run(['log', join(stage.folder, 'data'), '--path', '/adas'])
    expect(log.out).not.toContain('ip:127')
    expect(log.out).not.toContain('setACL')
  })
})

it('a copied queue goes on with the number after the last one', async () => {
  await stage.createNodes({ '/seq': null })
  for (let i = 0; i < 13; i++) await stage.run(['create', '/seq/item-', '--sequential'])
  for (let i = 0; i < 12; i++) await stage.zk.delete(`/seq/item-${String(i).padStart(10, '0')}`)
  const { out } = await stage.run(['export', '/seq'])
  expect(out).toContain('"sequence":13')
  expect((await stage.run(['import', '-', '/seq-copy'], { input: out })).code).toBe(0)
  expect((await stage.run(['create', '/seq-copy/item-', '--sequential'])).out).toBe(
    '/seq-copy/item-0000000013\n',
  )
  // Nothing else was created, and the same import again raises nothing.
  expect((await stage.zk.getChildren('/seq-copy')).children.toSorted()).toEqual([
    'item-0000000012',
    'item-0000000013',
  ])
  await stage.zk.delete('/seq-copy/item-0000000013')
  const { stat } = await stage.zk.getChildren('/seq-copy')
  expect((await stage.run(['import', '-', '/seq-copy'], { input: out })).code).toBe(0)
  expect((await stage.zk.getChildren('/seq-copy')).stat).toEqual(stat)
})

it('an export of files has the numbers of sequential children, from the snapshot and the log behind it', async () => {
  await stage.createNodes({ '/counted': null })
  const create = () => stage.run(['create', '/counted/item-', '--sequential'])
  for (let i = 0; i < 3; i++) await create()
  await stage.zk.delete('/counted/item-0000000000')
  await stage.zk.delete('/counted/item-0000000002')
  const { out } = await stage.run(['export', '/counted', '--from', join(stage.folder, 'data')])
  expect(out).toContain('"sequence":3')
  expect((await stage.run(['import', '-', '/recounted'], { input: out })).code).toBe(0)
  const created = await stage.run(['create', '/recounted/item-', '--sequential'])
  expect(created.out).toBe('/recounted/item-0000000003\n')
})

it('an export has the number of the next sequential child where its children are ephemeral', async () => {
  await stage.createNodes({ '/held': null })
  await stage.zk.create('/held/lock-', { data: null, mode: 'ephemeralSequential', protected: false })
  for (const source of [[], ['--from', join(stage.folder, 'data')]]) {
    const { out } = await stage.run(['export', '/held', ...source])
    const copy = `/held-copy-${source.length}`
    expect((await stage.run(['import', '-', copy], { input: out })).code).toBe(0)
    const created = await stage.run(['create', `${copy}/lock-`, '--sequential'])
    expect(created.out).toBe(`${copy}/lock-0000000001\n`)
  }
})
