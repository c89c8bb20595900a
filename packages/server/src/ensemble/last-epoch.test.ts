import { MAX_EPOCH, OpCode } from '@zabra/protocol'
import { silentLogger } from '@zabra/runtime'
import { nodeCompression } from '@zabra/runtime/node'
import { expect, it } from 'vitest'
import { renumber } from '../persistence/tools/index.ts'
import { Ensemble } from './testing/ensemble.ts'

const LAST = MAX_EPOCH - 1
const FOLDER = '/data/version-2'

async function stopAll(ensemble: Ensemble): Promise<void> {
  for (const member of ensemble.members.values()) await member.stop()
}

async function startAll(ensemble: Ensemble): Promise<void> {
  for (const member of ensemble.members.values()) await member.start()
}

async function write(ensemble: Ensemble, path: string): Promise<void> {
  const client = await ensemble.client(2)
  client.create(1, path)
  expect(await ensemble.receive(client, 1)).toEqual(['1:0'])
}

it('members that have used the last epoch say how to get back, and lead again with renumbered data', async () => {
  const ensemble = await Ensemble.start(3)
  await write(ensemble, '/first')
  await stopAll(ensemble)
  for (const { disk } of ensemble.members.values())
    for (const name of ['acceptedEpoch', 'currentEpoch'])
      disk.putFile(`${FOLDER}/${name}`, new TextEncoder().encode(String(LAST - 2)))
  for (const path of ['/before', '/last']) {
    await startAll(ensemble)
    await ensemble.allServe()
    await write(ensemble, path)
    await stopAll(ensemble)
  }

  await startAll(ensemble)
  const before = ensemble.lines.length
  await ensemble.advance(60_000)
  expect(ensemble.leader).toBe(undefined)
  const said = ensemble.lines.slice(before - 40).filter((line) => line.includes('zabra recover --renumber'))
  expect(said.length).toBe(3)
  await stopAll(ensemble)

  const { disk } = ensemble.member(1)
  const options = {
    disk,
    logger: silentLogger,
    compression: nodeCompression,
    dataDir: '/data',
    dataLogDir: '/data',
  }
  expect(await renumber(options)).toMatchObject({ from: LAST * 2 ** 32 + 2, to: 3 * 2 ** 32 + 2 })
  expect(await renumber(options)).toMatchObject({ from: 3 * 2 ** 32 + 2, to: 3 * 2 ** 32 + 2 })
  for (const id of [2, 3]) {
    const other = ensemble.member(id).disk
    for (const path of other.paths().filter((each) => each.startsWith(`${FOLDER}/`))) await other.remove(path)
    for (const path of disk.paths().filter((each) => each.startsWith(`${FOLDER}/`)))
      other.putFile(path, await disk.readFile(path))
  }
  await startAll(ensemble)
  await ensemble.allServe()
  expect(ensemble.server(ensemble.leader!).epoch).toBe(4)
  await write(ensemble, '/again')
  for (const id of [1, 2, 3]) {
    const client = await ensemble.client(id)
    const paths = ['/first', '/before', '/last', '/again']
    client.ask(9, OpCode.sync, (w) => w.string('/'))
    for (const [index, path] of paths.entries()) client.read(index, OpCode.exists, path)
    expect(await ensemble.receive(client, 5)).toEqual(['9:0', '0:0', '1:0', '2:0', '3:0'])
  }
})
