import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, it } from 'vitest'
import { sourceFiles } from './sources.ts'

const root = resolve(import.meta.dirname, '..')
const repository = /^https:\/\/github\.com\/zabra\/zabra\/(?:blob|tree)\/main\//
const ignored = ['node_modules', 'dist', 'fixtures', '.git', '.turbo', '.changeset']

const pagesIn = (folder: string): string[] =>
  readdirSync(folder).flatMap((name) => {
    if (ignored.includes(name)) return []
    const path = join(folder, name)
    if (statSync(path).isDirectory()) return pagesIn(path)
    return name.endsWith('.md') ? [path] : []
  })

const withoutCode = (text: string): string =>
  text.replaceAll(/^```[^]*?^```/gm, '').replaceAll(/`[^`\n]*`/g, '')

/** Returns the anchors that GitHub gives the headings of a page. */
const anchorsOf = (file: string): string[] =>
  [
    ...readFileSync(file, 'utf8')
      .replaceAll(/^```[^]*?^```/gm, '')
      .matchAll(/^#+ (.*)$/gm),
  ].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  )

/** Returns what is wrong with a link of a page, or undefined. */
function faultOf(page: string, link: string): string | undefined {
  if (/^[a-z]+:/.test(link) && !repository.test(link)) return undefined
  const [path = '', heading] = link.replace(repository, '').split('#')
  const file = repository.test(link) ? join(root, path) : path === '' ? page : join(dirname(page), path)
  if (!existsSync(file)) return `${relative(root, page)}: ${link} leads to no file`
  if (heading === undefined || heading === '' || !file.endsWith('.md')) return undefined
  return anchorsOf(file).includes(heading)
    ? undefined
    : `${relative(root, page)}: ${link} leads to no heading`
}

it('each link between documents leads to a file and a heading that exist', () => {
  const links = pagesIn(root).flatMap((page) =>
    [...withoutCode(readFileSync(page, 'utf8')).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => ({
      page,
      link: link!,
    })),
  )
  expect(links.length).toBeGreaterThan(200)
  expect(links.flatMap(({ page, link }) => faultOf(page, link) ?? [])).toEqual([])
})

it('a page of docs can be reached from README.md', () => {
  const found = new Set<string>()
  const follow = (page: string): void => {
    if (found.has(page) || !existsSync(page) || !page.endsWith('.md')) return
    found.add(page)
    for (const [, link = ''] of readFileSync(page, 'utf8').matchAll(/\]\(([^)\s#]+)[^)\s]*\)/g))
      follow(repository.test(link) ? join(root, link.replace(repository, '')) : join(dirname(page), link))
  }
  follow(join(root, 'README.md'))
  const lost = pagesIn(join(root, 'docs')).filter(
    // README.md names the folder of decisions.
    (page) => !found.has(page) && !page.startsWith(join(root, 'docs/decisions')),
  )
  expect(lost.map((page) => relative(root, page))).toEqual([])
})

it('the code names pages of docs that exist', () => {
  const named = sourceFiles(root).flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/(?<![\w/])docs\/[\w/-]+\.md/g)].map(([name]) => ({
      file,
      name,
    })),
  )
  expect(named.length).toBeGreaterThan(20)
  const wrong = named.filter(({ name }) => !existsSync(join(root, name)))
  expect(wrong.map(({ file, name }) => `${relative(root, file)}: ${name}`)).toEqual([])
})
