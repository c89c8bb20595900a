import { describe, expect, it } from 'vitest'
import { Interrupted } from './exit-codes.ts'
import { CliFixture, setupStage, stage } from './testing/cli-fixture.ts'

setupStage()

const node = (script: string): string[] => ['--', process.execPath, '-e', script]
const untilKilled =
  "process.on('SIGTERM', () => { console.log('terminated'); process.exit(5) }); console.log('up'); setInterval(() => {}, 1e6)"

describe('lock', () => {
  it('runs a command with a fencing token that grows, and exits with its code', async () => {
    const script = 'console.log(process.env.ZABRA_LOCK_TOKEN, process.env.ZABRA_LOCK_PATH); process.exit(7)'
    const first = await stage.run(['lock', '/locks/a', ...node(script)])
    const second = await stage.run(['lock', '/locks/a', ...node(script)])
    expect([first.code, second.code]).toEqual([7, 7])
    const [, token = '', path = ''] = /^(\d+) (\S+)\n$/.exec(first.out) ?? []
    expect(path).toMatch(/^\/locks\/a\//)
    expect(BigInt(second.out.split(' ')[0]!)).toBeGreaterThan(BigInt(token))
    expect((await stage.zk.getChildren('/locks/a')).children).toEqual([])
  })

  it('waits for the holder, or gives up with --wait, and does not run the command then', async () => {
    const holder = stage.start(['lock', '/locks/b', ...node(untilKilled)])
    await holder.stdout.until(/up/)
    expect(await stage.run(['lock', '/locks/b', '--wait', '0', ...node('console.log(1)')])).toMatchObject({
      code: 12,
      out: '',
      err: 'zabra: /locks/b is held by another client, and the command did not run.\n',
    })
    expect(await stage.run(['lock', '/locks/b', '--wait', '10ms', ...node('console.log(1)')])).toMatchObject({
      code: 12,
      out: '',
    })
    const waiter = stage.start(['lock', '/locks/b', ...node('console.log(1)')])
    await waiter.stderr.until(/waiting for \/locks\/b/)
    holder.stop.abort(new Interrupted('SIGTERM'))
    // The signal reached the command, and the lock was released after its end.
    expect(await holder.ended).toMatchObject({ out: 'up\nterminated\n' })
    expect(await waiter.ended).toMatchObject({ code: 0, out: '1\n' })
  })

  it('ends the command when the lock is lost', async () => {
    const holder = stage.start(['lock', '/locks/c', ...node(untilKilled)])
    await holder.stdout.until(/up/)
    const { children } = await stage.zk.getChildren('/locks/c')
    await stage.zk.delete(`/locks/c/${children[0]}`)
    expect(await holder.ended).toMatchObject({
      code: 13,
      out: 'up\nterminated\n',
      err: expect.stringContaining('The lock /locks/c was lost while the command ran') as unknown,
    })
  })

  it('says that a command does not exist, and releases the lock', async () => {
    expect(await stage.run(['lock', '/locks/d', '--', '/no/such/command'])).toMatchObject({
      code: 2,
      err: 'zabra: Cannot run /no/such/command (ENOENT). Check its name, and that it is installed.\n',
    })
    expect((await stage.zk.getChildren('/locks/d')).children).toEqual([])
  })
})

describe('elect', () => {
  it('runs the command as leader, and again after a lost leadership', async () => {
    const other = await CliFixture.start()
    const leader = other.start(['elect', '/election', ...node(untilKilled)])
    await leader.stdout.until(/up/)
    const { children } = await other.zk.getChildren('/election')
    await other.zk.delete(`/election/${children[0]}`)
    await leader.stdout.until(/up\nterminated\nup/)
    leader.stop.abort(new Interrupted('SIGTERM'))
    expect(await leader.ended).toMatchObject({
      code: 143,
      err: expect.stringContaining('the leadership of /election was lost') as unknown,
    })
    expect((await other.zk.getChildren('/election')).children).toEqual([])
    await other.stop()
  })

  it('exits with the code of the command when that ends', async () => {
    expect((await stage.run(['elect', '/one', ...node('process.exit(3)')])).code).toBe(3)
  })
})
