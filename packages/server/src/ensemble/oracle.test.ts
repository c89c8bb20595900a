import { expect, it } from 'vitest'
import { Ensemble } from './testing/ensemble.ts'

async function writeOracle(ensemble: Ensemble, id: number, text: string): Promise<void> {
  await ensemble.member(id).disk.replaceFile('/oracle', new TextEncoder().encode(text))
}

async function start(): Promise<Ensemble> {
  const ensemble = new Ensemble(2, { oraclePath: '/oracle' })
  for (const id of [1, 2]) await writeOracle(ensemble, id, '0')
  for (const member of ensemble.members.values()) await member.start()
  await ensemble.allServe()
  expect(ensemble.leader).toBe(2)
  return ensemble
}

it('one of two members leads alone when the oracle allows it, and the other one joins it again', async () => {
  const ensemble = await start()
  await ensemble.member(2).crash()
  await ensemble.until('the end of the role', () => ensemble.server(1).role === 'looking')
  await ensemble.advance(20_000)
  expect(ensemble.server(1).role).toBe('looking')
  await writeOracle(ensemble, 1, '1\n')
  await ensemble.until('a leader', () => ensemble.leader === 1)
  expect(await ensemble.create(await ensemble.client(1), '/alone')).toBe('1:0')
  await ensemble.startServing(2)
  expect(ensemble.server(2).role).toBe('following')
  expect(await ensemble.create(await ensemble.client(2), '/together')).toBe('1:0')
})

it('a leader that loses its only follower leads as long as the oracle allows it', async () => {
  const ensemble = await start()
  await writeOracle(ensemble, 2, '1')
  await ensemble.advance(1000)
  const client = await ensemble.client(2)
  await ensemble.member(1).crash()
  expect(await ensemble.create(client, '/alone')).toBe('1:0')
  for (let waited = 0; waited < 20_000; waited += 1000) {
    client.ask(-2, 11)
    await ensemble.advance(1000)
  }
  expect(ensemble.leader).toBe(2)
  // A missing file says no.
  await ensemble.member(2).disk.remove('/oracle')
  await ensemble.until('the end of the leadership', () => ensemble.server(2).role === 'looking')
  expect(ensemble.lines.join('\n')).toContain('The file of the oracle cannot be read')
})

it('a leader without its follower ends when the disk of the oracle hangs, and leads again when it answers', async () => {
  const ensemble = await start()
  await writeOracle(ensemble, 2, '1')
  await ensemble.advance(1000)
  await ensemble.member(1).crash()
  await ensemble.advance(20_000)
  expect(ensemble.leader).toBe(2)
  const { disk } = ensemble.member(2)
  const readFile = disk.readFile.bind(disk)
  let reads = 0
  let answer = (): void => {}
  disk.readFile = (path) => {
    if (path !== '/oracle') return readFile(path)
    reads++
    return new Promise((resolve) => (answer = () => resolve(Uint8Array.of(0x31))))
  }
  await ensemble.until('the end of the leadership', () => ensemble.server(2).role === 'looking')
  await ensemble.advance(20_000)
  expect(reads).toBe(1)
  disk.readFile = readFile
  answer()
  await ensemble.until('a leader', () => ensemble.leader === 2)
})

it('a member starts while the disk of the oracle hangs', async () => {
  const ensemble = new Ensemble(2, { oraclePath: '/oracle' })
  const { disk } = ensemble.member(1)
  const readFile = disk.readFile.bind(disk)
  disk.readFile = (path) => (path === '/oracle' ? new Promise(() => {}) : readFile(path))
  const starting = ensemble.member(1).start()
  await ensemble.advance(5000)
  await starting
  await ensemble.member(2).start()
  await ensemble.allServe()
})
