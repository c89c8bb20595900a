import { SeededRandom, type Platform } from '@zabra/runtime'
import { nodeCryptography } from '@zabra/runtime/node'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  Catalog,
  FolderTarget,
  readVerification,
  type BackupStore,
  type BackupTarget,
} from '../backup/index.ts'
import { TargetError } from '../backup/errors.ts'
import { TestServer } from '../testing/test-server.ts'
import { BackupVerification } from './backup-verification.ts'

const NODES = 300
const DAY = 86_400_000

let server: TestServer
let store: BackupStore
let catalog: Catalog

beforeEach(async () => {
  server = await TestServer.start({ backupTargets: ['/backup'], backupVerifyMs: 0 })
  const client = await server.connect()
  for (let i = 0; i < NODES; i++) client.create(i, `/n${i}`)
  await server.advance(60_000)
  const random = new SeededRandom(1)
  const target = new FolderTarget('/backup', { disk: server.disk, random })
  store = { target, cryptography: nodeCryptography, random, key: undefined }
  catalog = await Catalog.read(store)
  expect(catalog.snapshots).toHaveLength(1)
})

afterEach(() => server.stop())

/** Returns a verification on a clock that goes on by 5 ms with each look at it, and counts the turns that it waited for. */
function create(platform: Partial<Platform> = {}, onTurn = (): void => {}) {
  let now = 0
  let turns = 0
  const clock: Platform['clock'] = {
    ...server.platform().clock,
    wall: () => 1_700_000_000_000,
    monotonic: () => (now += 5),
    immediate: (action) => {
      turns++
      onTurn()
      setImmediate(action)
    },
  }
  const verification = new BackupVerification(
    store,
    { ...server.platform(), clock, ...platform },
    { backupVerifyMs: DAY },
  )
  return { verification, turns: () => turns, advance: (ms: number) => (now += ms) }
}

const until = async (isDone: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await isDone())) await new Promise((resolve) => setImmediate(resolve))
}

describe('the verification of backups', () => {
  it('gives the event loop a turn every few milliseconds, and writes its result to the target', async () => {
    expect(await readVerification(store)).toBeUndefined()
    const { verification, turns } = create()
    verification.runIfDue(catalog)
    await until(() => verification.last !== undefined)
    expect(verification.last).toMatchObject({ problem: null })
    expect(turns()).toBeGreaterThanOrEqual(Math.floor(NODES / 64))
    await until(async () => (await readVerification(store)) !== undefined)
    expect(await readVerification(store)).toEqual(verification.last)
  })

  it('is not made again before its time, by any member', async () => {
    const first = create()
    first.verification.runIfDue(catalog)
    await until(async () => (await readVerification(store)) !== undefined)
    const second = create()
    second.verification.runIfDue(catalog)
    await until(() => second.verification.last !== undefined)
    expect(second.turns()).toBe(0)
  })

  it('ends at once when the server stops, without a result', async () => {
    let ended: Promise<void> | undefined
    const { verification } = create({}, () => {
      ended ??= verification.end()
    })
    verification.runIfDue(catalog)
    await until(() => ended !== undefined)
    await ended
    expect(await readVerification(store)).toBeUndefined()
    expect(server.logLines.filter(({ level }) => level === 'warn')).toEqual([])
  })

  it('is left out while a second tree may not fit into memory', async () => {
    const { system } = server.platform()
    for (const limits of [
      { heap: 1000, process: Infinity },
      { heap: Infinity, process: 1000 },
    ]) {
      const small = {
        ...system,
        residentMemory: () => 600,
        heap: () => ({ used: 600, external: 0 }),
        memoryLimits: () => limits,
      }
      const { verification } = create({ system: small })
      const before = server.logLines.length
      verification.runIfDue(catalog)
      await until(() => server.logLines.length > before)
      expect(server.logLines.at(-1)?.sentence).toContain('the memory for a second tree is missing')
    }
    expect(await readVerification(store)).toBeUndefined()
  })

  it('ends without a result once the memory for its tree is used up, and is left out like one that has not begun', async () => {
    const limit = 2 ** 30
    let looks = 0
    const system = {
      ...server.platform().system,
      // The first look is that before it begins. The others come as often as the clock lets them.
      heap: () => ({ used: 0, external: looks++ === 0 ? 0 : limit }),
      residentMemory: () => 0,
      memoryLimits: () => ({ heap: Infinity, process: limit }),
    }
    const { verification, advance } = create({ system })
    verification.runIfDue(catalog)
    await until(() => server.logLines.some(({ sentence }) => sentence.includes('was not verified')))
    expect(server.logLines.at(-1)?.sentence).toContain('the memory for a second tree is missing')
    expect(await readVerification(store)).toBeUndefined()
    // Each attempt would take the memory of the clients.
    const before = looks
    advance(DAY / 2)
    verification.runIfDue(catalog)
    await verification.end()
    expect(looks).toBe(before)
  })

  it('reports no damage where the store did not answer, and is made again an hour later', async () => {
    const { target } = store
    let isAway = true
    const remote: BackupTarget = {
      url: target.url,
      list: (folder) => target.list(folder),
      async open(name) {
        if (isAway && name.startsWith('snapshot/')) throw new TargetError('The store did not answer.')
        return target.open(name)
      },
      write: (name, chunks) => target.write(name, chunks),
      create: (name, bytes) => target.create(name, bytes),
      remove: (name) => target.remove(name),
      listUnfinished: (before) => target.listUnfinished(before),
      removeUnfinished: (name) => target.removeUnfinished(name),
    }
    store = { ...store, target: remote }
    const { verification, advance } = create()
    verification.runIfDue(catalog)
    await until(() => server.logLines.some(({ sentence }) => /verified|cannot be restored/.test(sentence)))
    expect(server.logLines.at(-1)).toMatchObject({
      level: 'warn',
      facts: { reason: 'The store did not answer.' },
    })
    expect(await readVerification(store)).toBeUndefined()
    isAway = false
    advance(3_600_000)
    verification.runIfDue(catalog)
    await until(() => verification.last !== undefined)
    expect(verification.last).toMatchObject({ problem: null })
  })

  it('has a result where the target has no room to write it down', async () => {
    server.disk.injectFault = (call, path) =>
      call === 'open' && path.startsWith('/backup/verified') ? { code: 'ENOSPC' } : undefined
    const { verification } = create()
    verification.runIfDue(catalog)
    await until(() => server.logLines.some(({ sentence }) => /could not be/.test(sentence)))
    expect(verification.last).toMatchObject({ problem: null })
    expect(server.logLines.at(-1)).toMatchObject({
      level: 'warn',
      sentence: 'The result of a verification could not be written to the target',
      facts: { reason: expect.stringContaining('ENOSPC') as unknown },
    })
  })

  it('reports no damage of a backup that was removed meanwhile', async () => {
    for (const path of server.disk.paths())
      if (/^\/backup\/(?:snapshot|manifest)\//.test(path)) await server.disk.remove(path)
    const { verification, turns } = create()
    verification.runIfDue(catalog)
    await server.untilIdle()
    expect(turns()).toBe(0)
    expect(await readVerification(store)).toBeUndefined()
    expect(server.logLines.filter(({ level }) => level === 'error')).toEqual([])
  })
})
