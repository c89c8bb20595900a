import { readFileSync, readdirSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = resolve(import.meta.dirname, '..')

/** The packages that each package may import. A package not named here may import nothing of ours. */
const allowed: Record<string, readonly string[]> = {
  '@zabra/runtime': [],
  '@zabra/protocol': [],
  '@zabra/client': ['@zabra/protocol', '@zabra/runtime'],
  '@zabra/recipes': ['@zabra/client'],
  '@zabra/server': ['@zabra/protocol', '@zabra/runtime'],
  '@zabra/testkit': ['@zabra/protocol', '@zabra/runtime'],
  '@zabra/testing': ['@zabra/server', '@zabra/client', '@zabra/protocol', '@zabra/runtime'],
}

/** The layers of the server, top to bottom: what each may import. */
const layers: Record<string, readonly string[]> = {
  ensemble: [
    'admin',
    'audit',
    'connections',
    'database',
    'pipeline',
    'persistence',
    'settings',
    'core',
    'version',
    'server-types',
  ],
  admin: ['logging', 'backup', 'persistence', 'connections', 'audit', 'settings', 'core', 'version'],
  connections: ['audit', 'pipeline', 'persistence', 'settings', 'core'],
  audit: ['pipeline', 'settings', 'core'],
  pipeline: ['persistence', 'core'],
  database: ['persistence', 'core'],
  backup: ['persistence', 'core', 'version'],
  persistence: ['core'],
  settings: ['core'],
  core: [],
  logging: ['core'],
}

interface Source {
  readonly file: string
  readonly packageName: string
  readonly text: string
  readonly imports: readonly string[]
}

function walk(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    if (name === 'node_modules' || name === 'dist' || name === '.turbo') return []
    const path = join(folder, name)
    return statSync(path).isDirectory() ? walk(path) : [path]
  })
}

function packageOf(file: string): string {
  let folder = dirname(file)
  for (;;) {
    try {
      return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name: string }).name
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      folder = dirname(folder)
    }
  }
}

const sources: Source[] = ['packages', 'apps']
  .flatMap((top) => walk(join(root, top)))
  .filter((file) => file.endsWith('.ts') && file.includes('/src/'))
  .map((file) => {
    const text = readFileSync(file, 'utf8')
    const imports = [
      ...text.matchAll(
        /^(?:import|export)\s[^'"]*?from\s+'([^']+)'|^import\s+'([^']+)'|import\('([^']+)'\)/gm,
      ),
    ]
    return {
      file: relative(root, file),
      packageName: packageOf(file),
      text,
      imports: imports.map((match) => match[1] ?? match[2] ?? match[3] ?? ''),
    }
  })
const product = sources.filter(
  ({ file }) =>
    !file.endsWith('.test.ts') &&
    !file.startsWith('packages/testing/') &&
    !/\/(testing|testdata)\//.test(file),
)

describe('tidy', () => {
  it('lets packages import only in the direction that the architecture gives', () => {
    const wrong = product
      .filter(({ packageName }) => packageName.startsWith('@zabra/'))
      .flatMap(({ file, packageName, imports }) =>
        imports
          .filter((name) => name.startsWith('@zabra/'))
          .map((name) => name.split('/').slice(0, 2).join('/'))
          .filter((name) => name !== packageName && !allowed[packageName]?.includes(name))
          .map(
            (name) =>
              `${file} imports ${name}: ${packageName} may import ${allowed[packageName]?.join(', ') || 'none of ours'}`,
          ),
      )
    expect(wrong).toEqual([])
  })

  it('keeps node: imports in the runtime adapters and the apps', () => {
    const wrong = product
      .filter(({ file }) => file.startsWith('packages/') && !file.startsWith('packages/runtime/src/node/'))
      .flatMap(({ file, imports }) =>
        imports
          .filter((name) => name.startsWith('node:'))
          .map(
            (name) =>
              `${file} imports ${name}: put it behind a port in packages/runtime/src and its adapter in packages/runtime/src/node`,
          ),
      )
    expect(wrong).toEqual([])
  })

  it('keeps ws in the adapter for WebSockets and the apps', () => {
    const wrong = product
      .filter(({ file }) => file.startsWith('packages/') && !file.startsWith('packages/runtime/src/ws/'))
      .filter(({ imports }) => imports.includes('ws'))
      .map(({ file }) => `${file} imports ws: take the network of @zabra/runtime/ws instead`)
    expect(wrong).toEqual([])
  })

  it('loads the ASN.1 library only where certificates are read or made', () => {
    const readers = ['pkcs12', 'certificate', 'certificate-authority', 'tls-files'].map(
      (name) => `packages/runtime/src/node/${name}.ts`,
    )
    const lazy = ['./pkcs12.ts', './certificate.ts', './certificate-authority.ts', './tls-files.ts']
    const wrong = product.flatMap(({ file, text, imports }) => [
      ...imports
        .filter((name) => name.startsWith('@peculiar/') && !readers.includes(file))
        .map((name) => `${file} imports ${name}: read certificates through ${readers.join(' or ')}`),
      ...lazy
        .filter((name) =>
          new RegExp(`^import (?!type )[^\\n'{]*(\\{[^}]*\\} )?from '${name}'`, 'm').test(text),
        )
        .map((name) => `${file} imports ${name} at once: a start without TLS would load it; use import()`),
    ])
    expect(wrong).toEqual([])
  })

  it('keeps clocks, chance and processes out of the pure folders', () => {
    const pure = /^packages\/(protocol\/src|server\/src\/core|server\/src\/log)\//
    const banned =
      /\b(Date\.now|Math\.random|setTimeout|setInterval|setImmediate|performance\.now|process\.\w+|console\.\w+)\b/
    const wrong = product
      .filter(({ file }) => pure.test(file))
      .flatMap(({ file, text }) =>
        text
          .split('\n')
          .map((line, index) => ({ line: line.replace(/\/\/.*|^\s*\*.*|^\s*\/\*\*.*/, ''), index }))
          .filter(({ line }) => banned.test(line))
          .map(
            ({ line, index }) =>
              `${file}:${index + 1} uses ${banned.exec(line)?.[0]}: take the port of packages/runtime instead`,
          ),
      )
    expect(wrong).toEqual([])
  })

  it('keeps the commands of the command line apart, and what they share free of them', () => {
    const folderOf = (file: string): string => /^apps\/cli\/src\/((?:shell\/)?[^/]+)\//.exec(file)?.[1] ?? ''
    const wrong = product
      .filter(({ file }) => file.startsWith('apps/cli/src/'))
      .flatMap(({ file, imports }) =>
        imports
          .filter((name) => name.startsWith('.'))
          .map((name) => relative(root, resolve(root, dirname(file), name)))
          .filter((target) => {
            const [from, to] = [folderOf(file), folderOf(target)]
            if (to === 'commands') return from !== '' && !file.endsWith('commands/index.ts')
            return to === 'shell/commands' && from === to && !file.endsWith('commands/index.ts')
          })
          .map(
            (target) => `${file} imports ${target}: put what commands share in session, text, files or shell`,
          ),
      )
    expect(wrong).toEqual([])
  })

  it('imports relative files by their full name', () => {
    const wrong = sources.flatMap(({ file, imports }) =>
      imports
        .filter((name) => name.startsWith('.') && !/\.(ts|json|mjs)$/.test(name))
        .map((name) => `${file} imports ${name}: end it in .ts`),
    )
    expect(wrong).toEqual([])
  })

  it('lets the layers of the server import only downwards, type imports counted', () => {
    const prefix = 'packages/server/src/'
    const layerOf = (file: string): string | undefined =>
      file.startsWith(prefix) ? file.slice(prefix.length).split('/')[0]!.replace(/\.ts$/, '') : undefined
    const wrong = product.flatMap(({ file, text }) => {
      const from = layerOf(file)
      if (from === undefined || !(from in layers)) return []
      return relativeImports(file, text)
        .map((target) => ({ target, to: layerOf(target) ?? '' }))
        .filter(({ to }) => to !== from && !layers[from]!.includes(to))
        .map(
          ({ target }) =>
            `${file} imports ${target}: ${from} may import ${layers[from]!.join(', ') || 'no other layer'}`,
        )
    })
    expect(wrong).toEqual([])
  })

  it('has no circle of imports between the files of a package, type imports counted', () => {
    const graph = new Map(product.map(({ file, text }) => [file, relativeImports(file, text)]))
    const circles: string[] = []
    const done = new Set<string>()
    const visit = (file: string, trail: readonly string[]): void => {
      if (trail.includes(file)) {
        circles.push([...trail.slice(trail.indexOf(file)), file].join(' → '))
        return
      }
      if (done.has(file)) return
      for (const next of graph.get(file) ?? []) visit(next, [...trail, file])
      done.add(file)
    }
    for (const file of graph.keys()) if (!/\/gen\//.test(file)) visit(file, [])
    expect(circles).toEqual([])
  })
})

function relativeImports(file: string, text: string): string[] {
  return [...text.matchAll(/^(?:import|export)\s[^'"]*?from\s+'(\.[^']+)'/gm)].map((match) =>
    relative(root, resolve(root, dirname(file), match[1] ?? '')),
  )
}
