import { makeZxid } from '@zabra/protocol'
import { silentLogger } from '@zabra/runtime'
import { nodeCompression } from '@zabra/runtime/node'
import { diskWithFolder } from '@zabra/testkit'
import { expect, it } from 'vitest'
import { takeSnapshot } from '../index.ts'
import { createTxn, FOLDER, newTree } from '../testing/log-fixture.ts'
import { renumber } from './index.ts'

const MEMBERS = 'server.1=zk1:2888:3888:participant'
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

/** Returns the data of a member in epoch 5, with a configuration of epoch 4 and one that was proposed after it. */
async function memberFixture() {
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
  const logger = silentLogger
  const options = { disk, logger, compression: nodeCompression, dataDir: '/data', dataLogDir: '/data' }
  const configurations = async (): Promise<Record<string, string>> => {
    const names = disk.paths().filter((path) => path.startsWith('/data/zoo.cfg.dynamic.'))
    const files = names.map(async (path): Promise<[string, string]> => [
      path,
      text(await disk.readFile(path)),
    ])
    return Object.fromEntries(await Promise.all(files))
  }
  return { disk, options, configurations }
}

const RENUMBERED = {
  '/data/zoo.cfg.dynamic.200000001': MEMBERS,
  '/data/zoo.cfg.dynamic.next': `${MEMBERS}\nversion=300000002`,
}

it('a renumbering is on disk as a whole when it is reported', async () => {
  const { disk, options, configurations } = await memberFixture()
  const result = await renumber(options)
  expect(result).toEqual({ from: makeZxid(5, 1), to: makeZxid(3, 1), snapshot: 'snapshot.300000001' })
  disk.powerCut()
  expect(await configurations()).toEqual(RENUMBERED)
  expect(text(await disk.readFile(`${FOLDER}/acceptedEpoch`))).toBe('3')
})

it('a renumbering that cannot write the data leaves the proposed configuration as it was, and can be repeated', async () => {
  const { disk, options, configurations } = await memberFixture()
  const before = await configurations()
  disk.injectFault = (call, path) =>
    call === 'write' && path.includes('incoming') ? { code: 'ENOSPC' } : undefined
  await expect(renumber(options)).rejects.toMatchObject({ code: 'ENOSPC' })
  disk.injectFault = undefined
  expect(await configurations()).toMatchObject(before)
  await renumber(options)
  expect(await configurations()).toEqual(RENUMBERED)
})
