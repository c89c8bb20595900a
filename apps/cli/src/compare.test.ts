import { createServer, type AddressInfo, type Server } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { setupStage, stage } from './testing/cli-fixture.ts'

setupStage({ tickTimeMs: 200 })
const fakes: Server[] = []

/** Resolves to the address of a server that answers each word with a text. */
async function answering(text: string): Promise<string> {
  const fake = createServer((socket) => socket.once('data', () => socket.end(text)))
  fakes.push(fake)
  await new Promise<void>((resolve) => fake.listen(0, '127.0.0.1', resolve))
  return `127.0.0.1:${(fake.address() as AddressInfo).port}`
}

afterEach(() => {
  for (const fake of fakes.splice(0)) fake.close()
})

const compare = (...servers: string[]) => stage.run(['cluster', 'compare', ...servers])

describe('zabra cluster compare', () => {
  it('says that trees are equal, or from where on they differ', async () => {
    const one = await answering('80: 11\n100: -22\n180: 33\n')
    const same = await answering('100: -22\n180: 33\n200: 44\n')
    const other = await answering('80: 11\n100: -23\n180: 34\n')
    expect(await compare(one, same)).toMatchObject({
      code: 0,
      out: 'the trees are equal after 0x180: 33\n',
    })
    expect(await compare(one, same, other)).toMatchObject({
      code: 11,
      out: `the trees differ after 0x180, and did after 0x100:\n  ${one} 33\n  ${same} 33\n  ${other} 34\n`,
    })
    const { out } = await stage.run(['cluster', 'compare', one, other, '--json'])
    expect(JSON.parse(out)).toMatchObject({ zxid: '0x180', equal: false, differsFrom: '0x100' })
  })

  it('reads the digests of a server', async () => {
    await stage.zk.create('/n')
    for (let times = 0; times < 200; times++) await stage.zk.setData('/n', new Uint8Array(1))
    expect(await compare(stage.address, stage.address)).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^the trees are equal after 0x\w+: \d+\n$/),
    })
  })

  it.each([
    ['', 9, 'no digest of the same transaction'],
    ['hash is not executed because it is not in the whitelist.\n', 9, 'Add it to 4lw.commands.whitelist'],
    ['This ZooKeeper instance is not currently serving requests\n', 20, 'is not serving'],
    ['1: 2 garbage\nzz: 3\n', 9, 'Name its client port'],
    ['HTTP/1.1 400 Bad Request\r\n\r\n', 9, 'Name its client port'],
  ])('says what is missing in %j', async (text, exitCode, message) => {
    const { code, err } = await compare(stage.address, await answering(text))
    expect([code, err]).toEqual([exitCode, expect.stringContaining(message)])
  })

  it('needs two servers', async () => {
    expect((await compare(stage.address)).code).toBe(2)
  })
})
