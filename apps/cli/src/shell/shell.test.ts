import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openSession } from '../session/open.ts'
import { ClientTransport } from '../session/transport.ts'
import { setupStage, stage, type RunResult } from '../testing/cli-fixture.ts'
import { complete } from './complete.ts'
import { shellCommands } from './commands/index.ts'
import { historyFile, loadHistory, saveHistory } from './history.ts'
import { Shell } from './shell.ts'
import { splitWords } from './split.ts'

setupStage()

/** Runs lines as a pipe would bring them. */
const shell = (lines: readonly string[], ...flags: string[]): Promise<RunResult> =>
  stage.run(['shell', ...flags], { input: lines.map((line) => `${line}\n`).join('') })

describe('a line', () => {
  it.each([
    ['create /a "two words" acl', ['create', '/a', 'two words', 'acl']],
    ['set /a \'it is "so"\'', ['set', '/a', 'it is "so"']],
    ['  ls   /  ', ['ls', '/']],
    ['create /a ""', ['create', '/a', '']],
    ['', []],
    ['   ', []],
    ['set /a "half', undefined],
  ])('%j is split as ZooKeeper splits it', (line, words) => {
    expect(splitWords(line)).toEqual(words)
  })
})

describe('commands from a pipe', () => {
  it('run line by line and print as zkCli.sh does', async () => {
    const { code, out, err } = await shell([
      'create /p one',
      'create /p/b',
      'create -s /p/a- x',
      'ls /p',
      'ls -R /p',
      'get /p',
      'get /p/b',
      'get -x /p',
      'get -b /p',
      'getAcl /p',
      'getAllChildrenNumber /p',
      'sync /p',
      'create -e /p/e',
      'getEphemerals /p',
      'whoami',
      'deleteall /p',
      'ls /',
    ])
    expect(code).toBe(0)
    const name = /Created (\/p\/a-\d+)/.exec(err)![1]!
    expect(err).toBe(`Created /p\nCreated /p/b\nCreated ${name}\nCreated /p/e\n`)
    expect(out.split('\n')).toEqual([
      `[${name.slice(3)}, b]`,
      '/p',
      name,
      '/p/b',
      'one',
      'null',
      '00000000  6f 6e 65                                         one',
      'b25l',
      "'world,'anyone",
      ': cdrwa',
      '2',
      'Sync is OK',
      '[/p/e]',
      'Auth scheme: User',
      'ip: 127.0.0.1',
      '[zookeeper]',
      '',
    ])
  })

  it('continue after a failing line and exit with the code of the last one', async () => {
    const { code, out, err } = await shell(['get /none', 'nonsense', 'ls -q /', 'ls', 'ls /'])
    expect(code).toBe(0)
    expect(out).toBe('[zookeeper]\n')
    expect(err).toContain('Node does not exist: /none\n')
    expect(err).toContain('Command not found: Command not found nonsense\n')
    expect(err).toContain('Unrecognized option: -q\nls [-s] [-w] [-R] path\n')
    expect((await shell(['ls /', 'get /none'])).code).toBe(3)
  })

  it('exit at the first failing line with -e', async () => {
    const { code, out } = await shell(['ls /', 'create /none/x', 'ls /'], '-e')
    expect(code).toBe(3)
    expect(out).toBe('[zookeeper]\n')
  })

  it('exit at quit, and may come from --command', async () => {
    expect((await shell(['quit', 'ls /'])).out).toBe('')
    const { out } = await stage.run(['shell', '-c', 'create /once x', '-c', 'get /once'])
    expect(out).toBe('x\n')
    await stage.zk.delete('/once')
  })

  it.each([
    ['ls /x/', 'Path must not end with / character'],
    ['ls x', 'Path must start with / character'],
    ['get /a//b', 'Invalid path string "/a//b" caused by empty node name specified @3'],
    ['get /a/../b', 'Invalid path string "/a/../b" caused by relative paths not allowed @5'],
    ['create -c -e /x', '-c cannot be combined with -s or -e. Containers cannot be ephemeral or sequential.'],
    ['create -t 5 -e /x', 'TTLs cannot be used with Ephemeral znodes'],
    ['create -t 0 /x', 'ttl must be positive and cannot be larger than: 1099511627776'],
    [
      'create /x data bogus',
      'bogus does not have the form scheme:id:perm\nKeeperErrorCode = InvalidACL\nAcl is not valid : null',
    ],
    ['setquota -n 1 /none', '/none does not exist.'],
    ['delquota /none', 'Quota does not exist for /none'],
    ['removewatches /none', 'KeeperErrorCode = No such watcher for /none'],
    ['reconfig -add 5', 'KeeperErrorCode = Reconfig is disabled'],
    [
      'reconfig -members a -add b',
      "Can't use -file or -members together with -add or -remove (mixing incremental and non-incremental modes is not allowed)",
    ],
    [
      'reconfig -members a -file b',
      `Expected -file or -members, got both\n${shellCommands.get('reconfig')!.usage}`,
    ],
    ['deleteall /a "b', 'Expected a closing quote, got the end of the line'],
    ['redo 100', 'Command index out of range'],
    [
      'set /zookeeper -v soon x',
      'Expected a whole number after -v, got "soon"\nset [-s] [-v version] path data',
    ],
    ['create -t', 'Missing argument for option: t\ncreate [-s] [-e] [-c] [-t ttl] path [data] [acl]'],
    ['deleteall /zookeeper', '/zookeeper is needed by the server and stays.'],
  ])('%s prints the message of zkCli.sh', async (line, answer) => {
    const { err, code } = await shell([line])
    expect(err).toBe(`${answer}\n`)
    expect(code).not.toBe(0)
  })

  it('history counts lines from 0, shows eleven, and redo repeats one', async () => {
    const { out } = await shell(['version', 'printwatches', 'redo 0', 'history'])
    expect(out).toBe(
      'ZooKeeper CLI version: zabra 1.2.3\nprintwatches is on\nZooKeeper CLI version: zabra 1.2.3\n0 - version\n1 - printwatches\n2 - version\n3 - history\n',
    )
  })

  it('close closes the session but not the shell, and connect opens a session', async () => {
    const { out } = await shell(['close', 'ls /', 'connect', 'ls /', `connect ${stage.address}`, 'ls /'])
    expect(out).toBe('Not connected\n[zookeeper]\n[zookeeper]\n')
  })

  it('quotas are set, listed with their warning, and deleted', async () => {
    await stage.createNodes({ '/q': '12345', '/q/r': null })
    const { out, err } = await shell([
      'setquota -n 1 /q',
      'setquota -B 100 /q',
      'listquota /q',
      'setquota -n 1 /q/r',
      'delquota -n /q',
      'listquota /q',
      'delquota /q',
      'listquota /q',
    ])
    const warning = '[Warning]: the count quota you create is less than the existing count:2\n'
    expect(out).toBe(
      `${warning}${warning}Output quota for /q count=1,bytes=-1=;byteHardLimit=100;countHardLimit=-1\nOutput stat for /q count=2,bytes=5\nOutput quota for /q count=-1,bytes=-1=;byteHardLimit=100;countHardLimit=-1\nOutput stat for /q count=2,bytes=5\n`,
    )
    expect(err).toContain('/q/r has a parent /q which has a quota\n')
    expect(err).toContain('quota for /q does not exist.\n')
    await shell(['deleteall /q'])
  })

  it('watches are printed once for each change, and removed by kind', async () => {
    await stage.createNodes({ '/w': null })
    const { out } = await shell([
      'ls -w /w',
      'addWatch /w',
      'addWatch -m PERSISTENT /w',
      'create /w/a',
      'removewatches /w -r',
      'removewatches /w -p',
      'printwatches off',
      'deleteall /w',
    ])
    const events = out.split('\n').filter((line) => line.startsWith('WatchedEvent'))
    expect(events.toSorted()).toEqual([
      'WatchedEvent state:SyncConnected type:NodeChildrenChanged path:/w',
      'WatchedEvent state:SyncConnected type:NodeCreated path:/w/a',
      'WatchedEvent state:SyncConnected type:PersistentWatchRemoved path:/w',
      'WatchedEvent state:SyncConnected type:PersistentWatchRemoved path:/w',
    ])
  })

  it('setting a watch twice leaves one watch to fire and to remove', async () => {
    await stage.createNodes({ '/twice': null })
    const { out } = await shell([
      'addWatch /twice',
      'addWatch /twice',
      'get -w /twice',
      'get -w /twice',
      'removewatches /twice -a',
      'get -w /twice',
      'set /twice x',
      'get -w /twice',
      'set /twice y',
      'deleteall /twice',
    ])
    expect(out.split('\n').filter((line) => line.startsWith('WatchedEvent'))).toEqual([
      'WatchedEvent state:SyncConnected type:PersistentWatchRemoved path:/twice',
      'WatchedEvent state:SyncConnected type:DataWatchRemoved path:/twice',
      'WatchedEvent state:SyncConnected type:NodeDataChanged path:/twice',
      'WatchedEvent state:SyncConnected type:NodeDataChanged path:/twice',
    ])
  })

  it('help lists every command', async () => {
    const { out, code } = await shell(['help'])
    expect(code).toBe(0)
    for (const { usage } of shellCommands.values()) expect(out).toContain(`\t${usage}`)
  })
})

describe('an interactive shell', () => {
  it('completes commands, options and paths', async () => {
    await stage.createNodes({ '/tab': null, '/tab/one': null, '/tab/other': null })
    const running = stage.start(['shell'], { input: '' })
    const clientTransport = new ClientTransport()
    const own = new Shell({
      io: { stdout: running.stdout, stderr: running.stderr } as never,
      commands: shellCommands,
      server: stage.address,
      open: () =>
        openSession(
          { server: stage.address, auth: [], timeoutMs: 5000, clientTransport },
          running.stop.signal,
        ),
    })
    await own.connect()
    expect(await complete(own, 'get')).toEqual([
      ['get ', 'getAcl ', 'getAllChildrenNumber ', 'getEphemerals '],
      'get',
    ])
    expect(await complete(own, 'ls -')).toEqual([['-R ', '-s ', '-w '], '-'])
    expect(await complete(own, 'get /tab/o')).toEqual([['/tab/one', '/tab/other'], '/tab/o'])
    expect(await complete(own, 'get /t')).toEqual([['/tab'], '/t'])
    await stage.createNodes({ '/tab/with blank': null, '/tab/with blank/in': null })
    expect(await complete(own, 'get /tab/w')).toEqual([['"/tab/with blank'], '/tab/w'])
    expect(await complete(own, 'get "/tab/with b')).toEqual([['"/tab/with blank'], '"/tab/with b'])
    expect(await complete(own, "set '/x y' '/tab/with blank/")).toEqual([
      ["'/tab/with blank/in"],
      "'/tab/with blank/",
    ])
    expect(await complete(own, 'get /none/')).toEqual([[], '/none/'])
    expect(own.prompt).toBe(`[zk: ${stage.address}(CONNECTED) 0] `)
    await own.close()
    expect(own.prompt).toBe(`[zk: ${stage.address}(CLOSED) 0] `)
    await running.ended
  })

  it('interrupts the running command and keeps the session', async () => {
    await stage.createNodes({ '/stop': null })
    await Promise.all(Array.from({ length: 300 }, (_, i) => stage.zk.create(`/stop/${i}`, { data: null })))
    const running = stage.start(['shell'], { input: '' })
    const { stdout, stderr, stop } = running
    const options = {
      server: stage.address,
      auth: [],
      timeoutMs: 10_000,
      clientTransport: new ClientTransport(),
    }
    const own = new Shell({
      io: { stdout, stderr, signal: stop.signal } as never,
      commands: shellCommands,
      server: stage.address,
      open: () => openSession(options, stop.signal),
    })
    await own.connect()
    expect(own.interrupt()).toBe(false)
    const { fired } = await stage.zk.watchOnce('/stop', 'children')
    const deletion = own.execute('deleteall /stop -b 1')
    await fired
    expect(own.interrupt()).toBe(true)
    expect(await deletion).toBe(130)
    expect(await own.execute('sync /stop')).toBe(0)
    const left = await stage.zk.getAllChildrenNumber('/stop')
    expect(left).toBeGreaterThan(0)
    expect(await own.execute('sync /stop')).toBe(0)
    expect(await stage.zk.getAllChildrenNumber('/stop')).toBe(left)
    await own.close()
    await running.ended
  })

  it('loads lines of earlier shells, but no credentials', () => {
    const home = mkdtempSync(join(tmpdir(), 'zabra-home-'))
    try {
      const file = historyFile({ HOME: home }, 'linux')
      expect(file).toBe(join(home, '.local', 'state', 'zabra', 'history'))
      expect(historyFile({ XDG_STATE_HOME: '/s' }, 'linux')).toBe('/s/zabra/history')
      expect(loadHistory(file)).toEqual([])
      saveHistory(file, ['get /b', 'addauth digest ada:secret', 'ls /a'])
      expect(loadHistory(file)).toEqual(['get /b', 'ls /a'])
      expect(readFileSync(file, 'utf8')).toBe('ls /a\nget /b\n')
      expect(statSync(file).mode & 0o777).toBe(0o600)
    } finally {
      rmSync(home, { recursive: true })
    }
  })
})
