import { epochOf, makeZxid } from '@zabra/protocol'
import { MemoryDisk, silentLogger } from '@zabra/runtime'
import { nodeCompression } from '@zabra/runtime/node'
import { diskWithFolder } from '@zabra/testkit'
import { expect, it } from 'vitest'
import { CONFIGURATION_NODE, writeConfigurationNode } from '../../core/tree/index.ts'
import { takeSnapshot } from '../index.ts'
import { createTxn, diskWithLog, FOLDER, newTree } from '../testing/log-fixture.ts'
import { readDatabase, renumber } from './index.ts'

const MEMBERS = 'server.1=zk1:2888:3888:participant'
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

/** Returns the data of a member in epoch 5, with a configuration of epoch 4 and one that was proposed after it. */
async function memberDisk(): Promise<MemoryDisk> {
  const disk = await diskWithFolder(FOLDER)
  const tree = newTree()
  for (const epoch of [2, 4, 5]) {
    const { header, txn } = createTxn(makeZxid(epoch, 1))
    tree.apply(header, txn)
  }
  await takeSnapshot(tree, [], { disk, folder: FOLDER, compression: 'none', compressor: nodeCompression })
  for (const name of ['currentEpoch', 'acceptedEpoch'])
    disk.putFile(`${FOLDER}/${name}`, new TextEncoder().encode('5'))
  disk.putFile('/data/zoo.cfg.dynamic.400000001', new TextEncoder().encode(MEMBERS))
  disk.putFile('/data/zoo.cfg.dynamic.next', new TextEncoder().encode(`${MEMBERS}\nversion=500000002`))
  return disk
}

const optionsOn = (disk: MemoryDisk) => ({
  disk,
  logger: silentLogger,
  compression: nodeCompression,
  dataDir: '/data',
  dataLogDir: '/data',
})

/** Returns the configurations on a disk, by their files. */
async function configurationsOn(disk: MemoryDisk): Promise<Record<string, string>> {
  const names = disk.paths().filter((path) => path.startsWith('/data/zoo.cfg.dynamic.'))
  const files = names.map(async (path): Promise<[string, string]> => [path, text(await disk.readFile(path))])
  return Object.fromEntries(await Promise.all(files))
}

const NEXT = '/data/zoo.cfg.dynamic.next'
const RENUMBERED = {
  '/data/zoo.cfg.dynamic.200000001': MEMBERS,
  [NEXT]: `${MEMBERS}\nversion=300000002`,
}

it('a renumbering is on disk as a whole when it is reported', async () => {
  const disk = await memberDisk()
  const result = await renumber(optionsOn(disk))
  expect(result).toEqual({ from: makeZxid(5, 1), to: makeZxid(3, 1), snapshot: 'snapshot.300000001' })
  disk.powerCut()
  expect(await configurationsOn(disk)).toEqual(RENUMBERED)
  expect(text(await disk.readFile(`${FOLDER}/acceptedEpoch`))).toBe('3')
})

it('a renumbering that cannot write the data leaves the proposed configuration as it was, and can be repeated', async () => {
  const disk = await memberDisk()
  const before = await configurationsOn(disk)
  disk.injectFault = (call, path) =>
    call === 'write' && path.includes('incoming') ? { code: 'ENOSPC' } : undefined
  await expect(renumber(optionsOn(disk))).rejects.toMatchObject({ code: 'ENOSPC' })
  disk.injectFault = undefined
  expect(await configurationsOn(disk)).toMatchObject(before)
  await renumber(optionsOn(disk))
  expect(await configurationsOn(disk)).toEqual(RENUMBERED)
})

it('a renumbering that is cut off anywhere is completed by the next one', async () => {
  const original = await memberDisk()
  for (let fails = 0; ; fails++) {
    const disk = original.clone()
    let calls = 0
    disk.injectFault = () => (calls++ === fails ? { code: 'EIO' } : undefined)
    const isCutOff = await renumber(optionsOn(disk)).then(
      () => false,
      () => true,
    )
    disk.injectFault = undefined
    disk.powerCut()
    if (!isCutOff) break
    expect(await renumber(optionsOn(disk)), `call ${fails}`).toMatchObject({ to: makeZxid(3, 1) })
    const { [NEXT]: next, ...stored } = await configurationsOn(disk)
    expect([next, ...Object.values(stored)]).toEqual([RENUMBERED[NEXT], MEMBERS])
    // Once the data are renumbered, the epoch of the configuration is unknown. It is at most the last one.
    const version = Number.parseInt(Object.keys(stored)[0]!.split('.').at(-1)!, 16)
    expect(epochOf(version), `call ${fails}`).toBeLessThanOrEqual(3)
    for (const name of ['currentEpoch', 'acceptedEpoch'])
      expect(text(await disk.readFile(`${FOLDER}/${name}`))).toBe('3')
  }
})

it('a renumbering keeps the order and the counters of all zxids, also in the configuration', async () => {
  const disk = await diskWithFolder(FOLDER)
  const tree = newTree()
  const zxids = Array.from({ length: 1500 }, (_, index) =>
    makeZxid(3 + 2 * Math.floor(index / 500), 7 + index),
  )
  for (const zxid of zxids) {
    const { header, txn } = createTxn(zxid)
    tree.apply(header, txn)
  }
  const configuration = (version: number): string => `${MEMBERS}\nversion=${version.toString(16)}`
  writeConfigurationNode(tree, new TextEncoder().encode(configuration(zxids[700]!)), zxids[700]!, 0)
  tree.store.columns(tree.find('/zookeeper')).pzxid[tree.store.slot(tree.find('/zookeeper'))] = -1
  await takeSnapshot(tree, [], { disk, folder: FOLDER, compression: 'none', compressor: nodeCompression })
  const options = optionsOn(disk)
  await renumber(options)
  const renumbered = (zxid: number): number =>
    zxid <= 0 ? zxid : zxid - makeZxid(epochOf(zxid), 0) + makeZxid((epochOf(zxid) - 1) / 2, 0)
  const { nodes, lastZxid } = await readDatabase(disk, options, nodeCompression, silentLogger)
  expect(lastZxid).toBe(renumbered(zxids.at(-1)!))
  const found = [...nodes()]
  expect(found).toHaveLength(tree.nodeCount)
  for (const { path, stat, data } of found) {
    const { czxid, mzxid, pzxid } = tree.statOf(tree.find(path))
    expect([stat.czxid, stat.mzxid, stat.pzxid], path).toEqual([czxid, mzxid, pzxid].map(renumbered))
    if (path === CONFIGURATION_NODE) expect(text(data!)).toBe(configuration(renumbered(zxids[700]!)))
  }
  // Neither a configuration nor a file of epochs is made where there was none.
  expect(await disk.list('/data')).toEqual(['version-2'])
  expect((await disk.list(FOLDER)).toSorted()).toEqual(['set-aside', 'snapshot.3000005e2'])
})

it('a renumbering needs data with a snapshot', async () => {
  const missing = new MemoryDisk()
  await expect(renumber(optionsOn(missing))).rejects.toThrow('Expected an existing folder')
  expect(await missing.exists('/data')).toBe(false)
  const disk = await diskWithFolder(FOLDER)
  await expect(renumber(optionsOn(disk))).rejects.toThrow('Expected data to renumber, got none')
  await expect(renumber(optionsOn(await diskWithLog(3)))).rejects.toThrow(
    'Expected a snapshot beside log entries',
  )
})
