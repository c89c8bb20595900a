import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nodePlatform } from '@zabra/runtime/node'
import { lockFolder } from '@zabra/server/files'
import { beforeAll, describe, expect, it } from 'vitest'
import { CommandRun, setupStage, stage, type RunResult } from './testing/cli-fixture.ts'

setupStage()
let data: string
let config: string

beforeAll(async () => {
  await stage.zk.create('/kept', { data: null })
  await stage.zk.close()
  await stage.server.close()
  data = join(stage.folder, 'data')
  config = join(stage.folder, 'zoo.cfg')
  writeFileSync(
    config,
    'tickTime=2000\nclientPort=1\nserver.1=127.0.0.1:1:2\nserver.2=127.0.0.1:1:2\nserver.3=127.0.0.1:1:2;1\n',
  )
})

const run = (...argv: string[]): Promise<RunResult> => new CommandRun(argv, undefined, { input: '' }).ended

it.each(['plan', 'force', 'adopt'])('zabra recover %s names --logs in its help', async (command) => {
  expect((await run('recover', command, '--help')).out).toContain('--logs <folder>')
})

describe('zabra recover plan', () => {
  it('names the folder with the latest history', async () => {
    const copy = join(stage.folder, 'copy')
    cpSync(data, copy, { recursive: true })
    const { out, code } = await run('recover', 'plan', copy, data)
    expect(code).toBe(0)
    expect(out).toMatch(/^folder +last zxid +current epoch +accepted epoch +nodes\n/)
    expect(out).toMatch(/\nGo on with .*: its history is the latest of these\.\nThese are no quorum/)
    expect(JSON.parse((await run('recover', 'plan', data, '--json')).out)).toMatchObject({ take: data })
  })

  it('reads the logs of members in folders of their own, and says where it has found none', async () => {
    const [behind, split, logs] = ['behind', 'split', 'split-logs'].map((name) => join(stage.folder, name))
    for (const folder of [behind!, split!]) cpSync(data, folder, { recursive: true })
    const log = readdirSync(join(data, 'version-2')).find((name) => name.startsWith('log.'))!
    const chopped = await run('log', '--chop', '1', join(data, 'version-2', log), '-o', join(behind!, 'log'))
    expect(chopped.code).toBe(0)
    renameSync(join(behind!, 'log'), join(behind!, 'version-2', log))
    mkdirSync(join(logs!, 'version-2'), { recursive: true })
    renameSync(join(split!, 'version-2', log), join(logs!, 'version-2', log))
    const blind = await run('recover', 'plan', behind!, split!)
    expect(blind.err).toContain(`${split} has no logs: where its dataLogDir is another folder, name that`)
    const argv = ['recover', 'plan', behind!, split!, '--logs', behind!, '--logs', logs!]
    const found = await run(...argv, '--json')
    expect([found.code, found.err]).toEqual([0, ''])
    expect(JSON.parse(found.out)).toMatchObject({ take: split })
    const one = await run('recover', 'plan', behind!, split!, '--logs', logs!)
    expect([one.code, one.err]).toEqual([2, expect.stringContaining('Expected --logs 2 times')])
    const force = ['recover', 'force', split!, '--members', '3', '--config', config]
    for (const flags of [[], ['--yes']])
      expect(await run(...force, ...flags)).toMatchObject({
        code: 2,
        err: expect.stringContaining('--logs') as string,
      })
    expect((await run(...force, '--logs', logs!, '--yes')).code).toBe(0)
    expect((await run('snapshot', split!, '--path', '/kept')).out).toContain('/kept 0 bytes')
  })

  it('says which folder holds no data', async () => {
    const { err, code } = await run('recover', 'plan', join(stage.folder, 'none'))
    expect([code, err]).toEqual([2, expect.stringContaining('Check the path and its permissions')])
  })
})

describe('zabra recover force', () => {
  it('explains what it would do, and does it with --yes', async () => {
    const copy = join(stage.folder, 'forced')
    cpSync(data, copy, { recursive: true })
    const argv = ['recover', 'force', copy, '--members', '3', '--config', config]
    expect((await run(...argv)).out).toContain('This cannot be undone')
    const { out, err, code } = await run(...argv, '--yes')
    expect([code, err]).toEqual([
      0,
      expect.stringContaining('run zabra recover adopt on the data folder of every other'),
    ])
    expect(out).toMatch(
      /\nThe ensemble has the members 3 now, from 0x200000001 on; snapshot\.200000001 holds/,
    )
    expect((await run('snapshot', copy, '--path', '/kept')).out).toContain('/kept 0 bytes')
  })

  it('makes an ensemble of its own, into which adopt lets a former member', async () => {
    const [copy, former] = [join(stage.folder, 'forced-again'), join(stage.folder, 'former')]
    for (const folder of [copy, former]) cpSync(data, folder, { recursive: true })
    await run('recover', 'force', copy, '--members', '3', '--config', config, '--yes')
    expect(readFileSync(join(copy, 'version-2', 'zabra.cluster'), 'latin1')).toMatch(/^1-[\da-f]{32}\n$/)
    expect((await run('recover', 'adopt', former)).out).toContain('With --yes it is empty')
    const { out, err, code } = await run('recover', 'adopt', former, '--yes')
    expect([code, err]).toEqual([0, expect.stringContaining('let its zoo.cfg name the members')])
    expect(out).toContain('The member is empty; its former files are in')
    expect(readdirSync(join(former, 'version-2')).toSorted()).toEqual(['distrusted', 'set-aside'])
  })

  it('asks for the folder of the logs that zoo.cfg names, where only old logs are set aside beside the data', async () => {
    const copy = join(stage.folder, 'once-together')
    cpSync(data, copy, { recursive: true })
    const folder = join(copy, 'version-2')
    mkdirSync(join(folder, 'set-aside'), { recursive: true })
    const log = readdirSync(folder).find((name) => name.startsWith('log.'))!
    renameSync(join(folder, log), join(folder, 'set-aside', `1.${log}`))
    const split = join(stage.folder, 'split.cfg')
    writeFileSync(split, `dataDir=${copy}\ndataLogDir=/var/log/zookeeper\n${readFileSync(config, 'utf8')}`)
    const { err, code } = await run('recover', 'force', copy, '--members', '3', '--config', split)
    expect([code, err]).toEqual([2, expect.stringContaining('which its zoo.cfg says is /var/log/zookeeper')])
  })

  it('is refused, explanation included, while it does not know whom to ask', async () => {
    const { err, code } = await run('recover', 'force', data, '--members', '3')
    expect([code, err]).toEqual([2, expect.stringContaining('Name the zoo.cfg of this member with --config')])
  })

  it('takes the members from the stored configuration where the tree has none, and asks any number of them', async () => {
    const copy = join(stage.folder, 'stored')
    cpSync(data, copy, { recursive: true })
    const ids = Array.from({ length: 12 }, (_, index) => index + 1)
    const lines = ids.map((id) => `server.${id}=127.0.0.1:1:2:participant;127.0.0.1:1`)
    writeFileSync(join(copy, 'zoo.cfg.dynamic.100000000'), lines.join('\n'))
    const warnings: string[] = []
    const warned = (warning: Error): void => void warnings.push(warning.name)
    process.on('warning', warned)
    const { out, code } = await run('recover', 'force', copy, '--members', '3')
    process.off('warning', warned)
    expect(code).toBe(0)
    expect(out).toContain('server 12: it does not run, or cannot be reached')
    expect(warnings).toEqual([])
  })

  it('has nothing to adopt of a member that has never run', async () => {
    const folder = join(stage.folder, 'new-machine')
    mkdirSync(folder)
    writeFileSync(join(folder, 'myid'), '1\n')
    const { out, code } = await run('recover', 'adopt', folder, '--yes')
    expect([code, out]).toEqual([0, expect.stringContaining('has no data: add the member')])
    expect(readdirSync(folder)).toEqual(['myid'])
  })

  it.each([
    [['--members', '9'], 2, 'Name some of 1, 2, 3 with --members.'],
    [['--members', '9', '--yes'], 2, 'Name some of 1, 2, 3 with --members.'],
    [['--members', 'all'], 2, 'Expected ids of members, such as 4 or 4,5.'],
    [[], 2, "required option '--members <ids>' not specified"],
  ])('%j is refused', async (flags, exitCode, message) => {
    const { err, code } = await run('recover', 'force', data, '--config', config, ...flags)
    expect([code, err]).toEqual([exitCode, expect.stringContaining(message)])
  })
})

describe('zabra recover adopt', () => {
  /** Copies the data, with their logs in a folder of their own. */
  const splitData = (name: string): { split: string; logs: string } => {
    const [split, logs] = [join(stage.folder, name), join(stage.folder, `${name}-logs`)]
    cpSync(data, split, { recursive: true })
    mkdirSync(join(logs, 'version-2'), { recursive: true })
    for (const log of readdirSync(join(split, 'version-2')).filter((file) => file.startsWith('log.')))
      renameSync(join(split, 'version-2', log), join(logs, 'version-2', log))
    return { split, logs }
  }

  it('takes the folder of the logs from the zoo.cfg of the member, as a server reads it', async () => {
    const { split, logs } = splitData('adopt-configured')
    // From before the logs were in a folder of their own.
    mkdirSync(join(split, 'version-2', 'set-aside'))
    writeFileSync(join(split, 'version-2', 'set-aside', '1.log.1'), '')
    const own = join(stage.folder, 'adopted.cfg')
    const before = 'dataLogDir=/var/log/zookeeper'
    writeFileSync(own, `dataDir=${split}\n${before}\ndataLogDir ${logs}\nserver.1=127.0.0.1:1:2\n`)
    const { code, err } = await run('recover', 'adopt', split, '--config', own, '--yes')
    expect([code, err]).toEqual([0, expect.stringContaining('add it there, and start it')])
    expect(readdirSync(join(logs, 'version-2'))).toEqual(['set-aside'])
    expect(readdirSync(join(split, 'version-2')).toSorted()).toEqual(['distrusted', 'set-aside'])
  })

  it.each(['force', 'adopt'])(
    '%s asks for the logs where the folder that zoo.cfg names has none',
    async (command) => {
      const { split, logs } = splitData(`${command}-emptied`)
      for (const log of readdirSync(join(logs, 'version-2'))) rmSync(join(logs, 'version-2', log))
      const own = join(stage.folder, 'emptied.cfg')
      writeFileSync(own, `dataDir=${split}\ndataLogDir=${logs}\n${readFileSync(config, 'utf8')}`)
      const argv = command === 'force' ? ['--members', '3', '--yes'] : ['--yes']
      const { code, err } = await run('recover', command, split, '--config', own, ...argv)
      expect([code, err]).toEqual([
        2,
        expect.stringContaining(`which its zoo.cfg says is ${logs}) with --logs`),
      ])
    },
  )

  it('takes a dataLogDir that names the data folder in another way for the same', async () => {
    const copy = join(stage.folder, 'adopt-same')
    cpSync(data, copy, { recursive: true })
    const own = join(stage.folder, 'same.cfg')
    writeFileSync(own, `dataDir=${copy}\ndataLogDir=${copy}/\nserver.1=127.0.0.1:1:2\n`)
    expect(await run('recover', 'adopt', copy, '--config', own, '--yes')).toMatchObject({ code: 0 })
  })

  it('does not take the logs of the server of this machine for those of a copy from another one', async () => {
    const { split, logs } = splitData('adopt-copy')
    const own = join(stage.folder, 'copied.cfg')
    writeFileSync(own, `dataDir=/var/lib/zookeeper\ndataLogDir=${logs}\nserver.1=127.0.0.1:1:2\n`)
    const { code, err } = await run('recover', 'adopt', split, '--config', own, '--yes')
    expect([code, err]).toEqual([2, expect.stringContaining(`which its zoo.cfg says is ${logs}`)])
    expect(readdirSync(join(logs, 'version-2'))).not.toContain('set-aside')
  })

  it('asks for the folder of the logs where only old ones are set aside, and a server went on from there', async () => {
    const { split } = splitData('adopt-went-on')
    const folder = join(split, 'version-2')
    mkdirSync(join(folder, 'set-aside'))
    writeFileSync(join(folder, 'set-aside', '1.log.1'), '')
    const snapshot = readdirSync(folder).find((name) => name.startsWith('snapshot.'))!
    cpSync(join(folder, snapshot), join(folder, 'snapshot.ffffffffff'))
    const { code, err } = await run('recover', 'adopt', split, '--yes')
    expect([code, err]).toEqual([2, expect.stringContaining('(dataLogDir) with --logs')])
  })

  it('leaves no log behind in a folder of its own', async () => {
    const [split, logs] = ['adopt-split', 'adopt-logs'].map((name) => join(stage.folder, name))
    cpSync(data, split!, { recursive: true })
    const log = readdirSync(join(data, 'version-2')).find((name) => name.startsWith('log.'))!
    mkdirSync(join(logs!, 'version-2'), { recursive: true })
    renameSync(join(split!, 'version-2', log), join(logs!, 'version-2', log))
    const before = readdirSync(join(split!, 'version-2'))
    for (const flags of [[], ['--yes']])
      expect(await run('recover', 'adopt', split!, ...flags)).toMatchObject({
        code: 2,
        err: expect.stringContaining('Name the folder of the logs (dataLogDir) with --logs') as string,
      })
    expect(readdirSync(join(split!, 'version-2'))).toEqual(before)
    expect((await run('recover', 'adopt', split!, '--logs', logs!, '--yes')).code).toBe(0)
    expect(readdirSync(join(logs!, 'version-2'))).toEqual(['set-aside'])
    expect(readdirSync(join(split!, 'version-2')).toSorted()).toEqual(['distrusted', 'set-aside'])
  })

  it('adopts no member whose logs are in both folders', async () => {
    const [both, logs] = ['adopt-both', 'adopt-both-logs'].map((name) => join(stage.folder, name))
    for (const folder of [both!, logs!]) cpSync(data, folder, { recursive: true })
    for (const name of readdirSync(join(logs!, 'version-2')))
      if (!name.startsWith('log.')) rmSync(join(logs!, 'version-2', name), { recursive: true })
    const { err, code } = await run('recover', 'adopt', both!, '--logs', logs!, '--yes')
    expect([code, err]).toEqual([
      17,
      expect.stringContaining('Move all log.* files to the folder of dataLogDir'),
    ])
    expect(readdirSync(join(both!, 'version-2'))).not.toContain('set-aside')
  })

  it('takes no logs from a folder that a server uses', async () => {
    const [split, logs] = ['locked-split', 'locked-logs'].map((name) => join(stage.folder, name))
    cpSync(data, split!, { recursive: true })
    mkdirSync(join(logs!, 'version-2'), { recursive: true })
    const log = readdirSync(join(data, 'version-2')).find((name) => name.startsWith('log.'))!
    renameSync(join(split!, 'version-2', log), join(logs!, 'version-2', log))
    const { disk, system } = nodePlatform()
    const unlock = await lockFolder(disk, logs!, system, 'another')
    const { err, code } = await run('recover', 'adopt', split!, '--logs', logs!, '--yes')
    await unlock()
    expect([code, err]).toEqual([1, expect.stringContaining('in use by')])
    expect(readdirSync(join(logs!, 'version-2'))).toEqual([log])
  })
})
