import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { setupStage, stage } from './testing/cli-fixture.ts'

setupStage()

const dataOf = async (path: string) => Buffer.from((await stage.zk.getData(path)).data).toString()
const PATH = process.env['PATH'] ?? ''

describe('txn', () => {
  it('executes all operations', async () => {
    await stage.createNodes({ '/t': 'a', '/t/old': null })
    expect(
      await stage.run(['txn', 'check /t 0', 'set /t "b c" 0', 'create /t/new x', 'delete /t/old', '--json']),
    ).toMatchObject({ code: 0, out: '{"operations":4}\n' })
    expect([await dataOf('/t'), await dataOf('/t/new')]).toEqual(['b c', 'x'])
    expect((await stage.zk.getChildren('/t')).children).toEqual(['new'])
  })

  it('names the operation that failed, and changes nothing', async () => {
    const { code, err } = await stage.run(['txn'], { input: '# comment\nset /t z\n\ncheck /t 9\n' })
    expect(code).toBe(5)
    expect(err).toMatch(
      /^zabra: Operation 2 \(check \/t 9\): \/t has another version .* Nothing was changed\.\n$/,
    )
    expect(await dataOf('/t')).toBe('b c')
  })

  it.each([
    [['set /t'], 'Expected data to set, got "set /t"'],
    [['move /t /u'], 'Expected check, create, set or delete, got "move /t /u"'],
    [['set /t a b c'], 'quotes around data with blanks'],
    [['check /t x'], 'Expected a version'],
    [['set t a'], 'Expected an operation and a path'],
    [['set /t "a'], 'Expected a closing quote'],
    [[], 'Expected at least one operation'],
  ])('%j is refused', async (operations, message) => {
    expect(await stage.run(['txn', ...operations])).toMatchObject({
      code: 2,
      err: expect.stringContaining(message) as unknown,
    })
  })
})

describe('edit', () => {
  it('stores what the editor wrote, without the newline that it appended', async () => {
    await stage.createNodes({ '/edit': 'old' })
    const environment = { PATH, EDITOR: `printf 'new\\n' >` }
    expect(await stage.run(['edit', '/edit'], { environment })).toMatchObject({ code: 0, err: '' })
    expect(await dataOf('/edit')).toBe('new')
  })

  it('keeps the text when another client has changed the node meanwhile', async () => {
    const script = join(stage.folder, 'editor.sh')
    const ready = join(stage.folder, 'ready')
    writeFileSync(script, `echo mine > "$1"; echo opened; while [ ! -e ${ready} ]; do :; done`)
    const editing = stage.start(['edit', '/edit'], { environment: { PATH, EDITOR: `sh ${script}` } })
    await editing.stdout.until(/opened/)
    await stage.zk.setData('/edit', new TextEncoder().encode('theirs'))
    writeFileSync(ready, '')
    const { code, err } = await editing.ended
    expect(code).toBe(5)
    const file = /Your text is in (\S+);/.exec(err)?.[1] ?? ''
    expect(readFileSync(file, 'utf8')).toBe('mine\n')
    expect(await dataOf('/edit')).toBe('theirs')
  })

  it('changes nothing when the editor fails or leaves the text', async () => {
    expect(await stage.run(['edit', '/edit'], { environment: { PATH, EDITOR: 'false' } })).toMatchObject({
      code: 1,
      err: expect.stringContaining('The editor false ended with 1') as unknown,
    })
    expect(await stage.run(['edit', '/edit'], { environment: { PATH, EDITOR: 'true' } })).toMatchObject({
      code: 0,
      err: 'zabra: /edit was not changed\n',
    })
  })
})

describe('digest', () => {
  it('prints the id that a server gives a user, and shows no password', async () => {
    expect(await stage.run(['digest', 'bob'], { input: 'pw\n' })).toMatchObject({
      code: 0,
      out: 'bob:ikIaKsbtGweaHnb/jKn7OHqbunM=\n',
      err: '',
    })
    expect((await stage.run(['digest', 'a:b'], { input: 'pw\n' })).code).toBe(2)
    expect((await stage.run(['digest', 'bob'], { input: '' })).code).toBe(2)
  })
})

describe('watch', () => {
  it('prints the data with --data, and runs the command of --exec with event, path and data', async () => {
    await stage.createNodes({ '/w': 'a' })
    const exec = 'echo "$ZABRA_EVENT $ZABRA_PATH $(cat)"'
    const watching = stage.start(['watch', '/w', '--data', '--exec', exec, '-n', '2'], {
      environment: { PATH },
    })
    await watching.stderr.until(/watching/)
    await stage.zk.setData('/w', new TextEncoder().encode('b\u202e'))
    await watching.stdout.until(/nodeDataChanged \/w b/)
    await stage.zk.delete('/w')
    const { code, out } = await watching.ended
    expect(code).toBe(0)
    expect(out).toMatch(
      /nodeDataChanged \/w "b\\u202e"\nnodeDataChanged \/w b\u202e\n\S+ nodeDeleted \/w\nnodeDeleted \/w \n$/,
    )
  })
})

describe('diff and mirror', () => {
  it('diff prints what differs, and mirror makes it equal', async () => {
    await stage.createNodes({ '/a': '1', '/a/same': 's', '/a/x': 'x', '/a/x/y': null, '/a/x-1': 'z' })
    await stage.createNodes({
      '/b': '1',
      '/b/same': 's',
      '/b/extra': null,
      '/b/extra/e': null,
      '/b/x-1': 'q',
    })
    expect(await stage.run(['diff', '/a', '/b'])).toMatchObject({
      code: 11,
      out: '+ /extra\n+ /extra/e\n- /x\n- /x/y\n~ /x-1\n    - "z"\n    + "q"\n',
      err: '',
    })
    const dry = await stage.run(['mirror', '/a', '/b', '--delete', '--dry-run'])
    expect(dry.out).toBe('+ /b/x\n+ /b/x/y\n~ /b/x-1\n- /b/extra/e\n- /b/extra\n')
    expect((await stage.run(['diff', '/a', '/b'])).code).toBe(11)
    expect(await stage.run(['mirror', '/a', '/b', '--delete'])).toMatchObject({ code: 0, out: dry.out })
    expect(await stage.run(['diff', '/a', '/b'])).toMatchObject({ code: 0, out: '' })
    expect(await stage.run(['mirror', '/a', '/b', '--delete', '--json'])).toMatchObject({
      out: '{"removed":0,"added":0,"changed":0}\n',
    })
  })

  it('mirror copies to another server, with access lists and missing parents', async () => {
    await stage.createNodes({ '/src': '1' })
    await stage.zk.create('/src/private', {
      data: null,
      acl: [{ perms: 1, scheme: 'world', id: 'anyone' }],
    })
    const there = `${stage.address}/copies/src`
    expect((await stage.run(['mirror', '/src', there])).code).toBe(0)
    expect(await stage.run(['diff', '/src', there])).toMatchObject({ code: 0, out: '' })
  })

  it.each([
    ['/a', '/a/below'],
    ['/', '/a'],
    ['/a', '/zookeeper/x'],
    ['/a', 'host'],
  ])('mirror %s %s is refused', async (from, to) => {
    expect((await stage.run(['mirror', from, to])).code).toBe(2)
  })
})
