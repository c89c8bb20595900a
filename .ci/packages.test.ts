import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'

type Exports = { readonly [key: string]: string | Exports }

interface Manifest {
  readonly name: string
  readonly version?: string
  readonly private?: boolean
  readonly description?: string
  readonly keywords?: readonly string[]
  readonly homepage?: string
  readonly bugs?: { readonly url: string }
  readonly repository?: { readonly url: string; readonly directory: string }
  readonly author?: string
  readonly files?: readonly string[]
  readonly exports: Exports
  readonly publishConfig?: {
    readonly access: string
    readonly provenance: boolean
    readonly exports?: Exports
  }
}

const root = resolve(import.meta.dirname, '..')
const repository = 'https://github.com/zabra/zabra'

const manifests = ['packages', 'apps']
  .flatMap((top) => readdirSync(join(root, top)).map((name) => `${top}/${name}`))
  .filter((folder) => existsSync(join(root, folder, 'package.json')))
  .map((folder) => ({
    folder,
    manifest: JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as Manifest,
  }))
const published = manifests.filter(({ manifest }) => manifest.private !== true)

/** Returns the entry points without the condition that leads to the sources, which are not published. */
const withoutSources = (exports: Exports): Exports =>
  Object.fromEntries(
    Object.entries(exports).flatMap(([key, value]) => {
      if (key === '@zabra/source') return []
      return [[key, typeof value === 'string' ? value : withoutSources(value)]]
    }),
  )

/** Returns the source of an entry point below `src`; none for files that are no modules. */
const sourceOf = (entry: string | Exports): string[] =>
  typeof entry === 'string' || typeof entry['@zabra/source'] !== 'string'
    ? []
    : [entry['@zabra/source'].replace('./src/', '')]

describe.each(published)('$manifest.name', ({ folder, manifest }) => {
  it('names its repository, home page, bugs, author and keywords, and is published with provenance', () => {
    expect(manifest).toMatchObject({
      homepage: `${repository}/tree/main/${folder}#readme`,
      bugs: { url: `${repository}/issues` },
      repository: { url: `git+${repository}.git`, directory: folder },
      author: 'The Zabra authors',
      publishConfig: { access: 'public', provenance: true },
    })
    expect(manifest.description?.length).toBeGreaterThan(20)
    expect(manifest.keywords).toContain('zookeeper')
  })

  it('publishes no sources and the entry points that the workspace has', () => {
    expect(manifest.files?.filter((name) => name !== 'dist' && name !== 'examples')).toEqual([])
    const { exports } = manifest
    expect(manifest.publishConfig?.exports ?? exports).toEqual(withoutSources(exports))
  })

  it('lists the exports of each entry point one by one', () => {
    const entries = readdirSync(join(root, folder, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('index.ts'))
      .concat(Object.values(manifest.exports).flatMap(sourceOf))
    const wrong = entries.flatMap((file) =>
      (readFileSync(join(root, folder, 'src', file), 'utf8').match(/^export (type )?\*.*$/gm) ?? [])
        // The names of another entry point are listed there.
        .filter((line) => !entries.includes(join(dirname(file), /from '(\..*)'/.exec(line)?.[1] ?? '')))
        .map((line) => `${folder}/src/${file}: ${line}`),
    )
    expect(wrong).toEqual([])
  })

  it('has a README that shows the installation first', () => {
    const readme = readFileSync(join(root, folder, 'README.md'), 'utf8')
    const [first = ''] = /```[\s\S]*?```/.exec(readme) ?? []
    expect(first).toMatch(new RegExp(`^\`\`\`sh\nnpm install .*${manifest.name}\\b`))
  })

  it('has a README whose links are absolute and lead to files and headings that exist', () => {
    const readme = readFileSync(join(root, folder, 'README.md'), 'utf8')
    for (const [, link = ''] of readme.matchAll(/\]\(([^)]*)\)/g)) {
      const [, path = '', heading] = /^([^#]*)(?:#(.*))?$/.exec(link)!
      if (path.startsWith('https://') && !path.startsWith(repository)) continue
      const file = path === '' ? `${folder}/README.md` : /\/(?:blob|tree)\/main\/(.*)$/.exec(path)?.[1]
      expect(file, `${link} is relative or leads elsewhere`).toBeDefined()
      expect(existsSync(join(root, file!)), `${link} leads to no file`).toBe(true)
      if (heading !== undefined) expect(anchorsOf(readFileSync(join(root, file!), 'utf8'))).toContain(heading)
    }
  })
})

/** READMEs of the project, of packages and programs, and of recipes. */
const readmes = ['.', ...manifests.map(({ folder }) => folder), ...foldersIn('packages/recipes/src')]
  .map((folder) => join(folder, 'README.md'))
  .filter((file) => existsSync(join(root, file)))

function foldersIn(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [`${folder}/${entry.name}`] : [],
  )
}

it('the examples of READMEs are JavaScript for the oldest Node, but for one that shows the types', () => {
  const examples = readmes.flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(/```(ts|js)\n([\s\S]*?)```/g)].map(
      ([, language, code = '']) => ({ file, language, code }),
    ),
  )
  expect(examples.length).toBeGreaterThan(50)
  const typed = examples.filter(({ language }) => language === 'ts').map(({ file }) => file)
  expect(typed).toEqual([join('packages/client/README.md')])
  const disposing = examples.filter(
    ({ language, code }) => language === 'js' && /^\s*await using /m.test(code),
  )
  expect(disposing.map(({ file }) => file)).toEqual([])
})

const anchorsOf = (text: string): string[] =>
  [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^a-z0-9 -]/g, '')
      .replaceAll(' ', '-'),
  )

it('no two packages are packed into a file of the same name', () => {
  const names = published.map(({ manifest }) => manifest.name.replace('@', '').replace('/', '-'))
  expect(new Set(names).size).toBe(names.length)
})

it('private programs have no version', () => {
  const versions = manifests
    .filter(({ folder, manifest }) => manifest.private === true && folder.startsWith('apps/'))
    .map(({ manifest }) => manifest.version)
  expect(versions).toEqual(versions.map(() => undefined))
})
