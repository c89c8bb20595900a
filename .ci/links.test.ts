import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, it } from 'vitest'
import { sourceFiles } from './sources.ts'

const root = resolve(import.meta.dirname, '..')
const repository = /^https:\/\/github\.com\/zabra\/zabra\/(?:blob|tree)\/main\//
const ignored = ['node_modules', 'dist', 'fixtures', '.git', '.turbo', '.changeset']

const filesIn = (folder: string): string[] =>
  readdirSync(folder).flatMap((name) => {
    if (ignored.includes(name)) return []
    const path = join(folder, name)
    return statSync(path).isDirectory() ? filesIn(path) : [path]
  })
const pagesIn = (folder: string): string[] => filesIn(folder).filter((file) => file.endsWith('.md'))
/** Files of tools that name pages: rules of alarms, dashboards, workflows, descriptions of packages. */
const toolFiles = filesIn(root).filter((file) => /\.(?:json|ya?ml|mjs|sh)$|\/\.ci\/run$/.test(file))

const withoutBlocks = (text: string): string => text.replaceAll(/^ *(```|~~~)[^]*?^ *\1.*$/gm, '')
const withoutCode = (text: string): string => withoutBlocks(text).replaceAll(/`[^`\n]*`/g, '')

/** Where a page links to: in brackets, at its definitions of references, and in HTML. */
const linksIn = (text: string): string[] =>
  [
    /\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g,
    /^ {0,3}\[[^\]]+\]:\s+<?([^\s>]+)/gm,
    /<(?:a|img)\s[^>]*?(?:href|src)="([^"]+)"/g,
  ].flatMap((form) => [...withoutCode(text).matchAll(form)].map(([, link]) => link!))

/** Returns the anchors that GitHub gives the headings of a page, and those that the page sets. */
function anchorsIn(text: string): string[] {
  const page = withoutBlocks(text)
  const times = new Map<string, number>()
  const headings = [...page.matchAll(/^#+ (.*?)(?: #+)?$/gm)].map(([, heading]) => {
    const anchor = heading!
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{M}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-')
    const earlier = times.get(anchor) ?? 0
    times.set(anchor, earlier + 1)
    return earlier === 0 ? anchor : `${anchor}-${earlier}`
  })
  const set = [...withoutCode(page).matchAll(/<a\s[^>]*?(?:id|name)="([^"]+)"/g)].map(([, anchor]) => anchor!)
  return [...headings, ...set]
}

/** Returns what is wrong with a link of a file, or undefined. */
function faultOf(from: string, link: string): string | undefined {
  if (/^[a-z]+:/.test(link) && !repository.test(link)) return undefined
  const [path = '', heading = ''] = link.replace(repository, '').split('#')
  const target = repository.test(link) ? join(root, path) : path === '' ? from : join(dirname(from), path)
  const at = `${relative(root, from)}: ${link}`
  if (!existsSync(target)) return `${at} leads to no file`
  // GitHub shows the README.md of a folder, which it calls readme in the address of a package.
  const page = statSync(target).isDirectory() ? join(target, 'README.md') : target
  if (heading === '' || (heading === 'readme' && page !== target) || !page.endsWith('.md')) return undefined
  return existsSync(page) && anchorsIn(readFileSync(page, 'utf8')).includes(heading)
    ? undefined
    : `${at} leads to no heading`
}

it('finds links of each form, and not those in code', () => {
  const text = [
    '[a](one.md#x), [`code`](two.md "title"), [b](<three.md>), [c][c], `[e](no.md)`',
    '[c]: four.md',
    '<a href="five.md">f</a> <img alt="" src="six.svg">',
    '  ```\n  [g](no.md)\n  ```',
  ].join('\n')
  expect(linksIn(text)).toEqual(['one.md#x', 'two.md', 'three.md', 'four.md', 'five.md', 'six.svg'])
})

it('knows the anchors of headings with code and links, of repeated ones, and those that a page sets', () => {
  const text = '# The `a.b` of x, y\n## See [this](page.md) ##\n## See this\n```\n# no\n```\n<a id="own"></a>'
  expect(anchorsIn(text)).toEqual(['the-ab-of-x-y', 'see-this', 'see-this-1', 'own'])
})

it('each link between documents leads to a file and a heading that exist', () => {
  const links = pagesIn(root).flatMap((page) =>
    linksIn(readFileSync(page, 'utf8')).map((link) => ({ page, link })),
  )
  expect(links.length).toBeGreaterThan(200)
  expect(links.flatMap(({ page, link }) => faultOf(page, link) ?? [])).toEqual([])
})

it('a page of docs can be reached from README.md', () => {
  const found = new Set<string>()
  const follow = (page: string): void => {
    if (found.has(page) || !existsSync(page) || !page.endsWith('.md')) return
    found.add(page)
    for (const link of linksIn(readFileSync(page, 'utf8'))) {
      const [path = ''] = link.replace(repository, '').split('#')
      follow(repository.test(link) ? join(root, path) : join(dirname(page), path))
    }
  }
  follow(join(root, 'README.md'))
  const lost = pagesIn(join(root, 'docs')).filter(
    // README.md names the folder of decisions.
    (page) => !found.has(page) && !page.startsWith(join(root, 'docs/decisions')),
  )
  expect(lost.map((page) => relative(root, page))).toEqual([])
})

it('code, settings of tools, descriptions of packages and pages name pages and headings that exist', () => {
  const files = [...sourceFiles(root), ...toolFiles, ...pagesIn(root)].filter(
    (file) => file !== import.meta.filename,
  )
  const named = files.flatMap((file) => {
    const text = readFileSync(file, 'utf8')
    const paths = text.matchAll(
      /(?<![\w/.-])(?:(?:docs|apps|packages|deploy)\/[\w/-]+|ARCHITECTURE|CONTRIBUTING|SECURITY)\.md(?:#[\w-]+)?/g,
    )
    const addresses = text.matchAll(/https:\/\/github\.com\/zabra\/zabra\/(?:blob|tree)\/main\/[\w/.#-]+/g)
    return [
      ...[...paths].map(([path]) => ({ file, link: `https://github.com/zabra/zabra/blob/main/${path}` })),
      ...[...addresses].map(([link]) => ({ file, link: link.replace(/\.$/, '') })),
    ]
  })
  expect(named.length).toBeGreaterThan(25)
  expect(named.flatMap(({ file, link }) => faultOf(file, link) ?? [])).toEqual([])
})
