import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseJaas } from './jaas.ts'

const module = 'org.apache.zookeeper.server.auth.DigestLoginModule'
const options = (text: string): unknown => {
  const jaas = parseJaas(text)
  if ('problem' in jaas) return jaas
  return Object.fromEntries(
    [...jaas.sections].map(([name, modules]) => [
      name,
      modules.flatMap(({ options }) => options.map((option) => [option.name, option.value, option.line])),
    ]),
  )
}

describe('parseJaas', () => {
  it('returns sections with login modules and their options, and skips comments', () => {
    const text = `
      // The users
      Server {
        ${module} required /* all of
          them */ user_bob="se\\"cret;" // one
          user_al='a b'
          user_eve=plain;
      };
      Client { ${module} Required username="bob"; com.example.Other optional; };
      "Last one" { };`
    expect(options(text)).toEqual({
      Server: [
        ['user_bob', 'se"cret;', 5],
        ['user_al', 'a b', 6],
        ['user_eve', 'plain', 7],
      ],
      Client: [['username', 'bob', 9]],
      'Last one': [],
    })
  })

  it('decodes the escapes of Java', () => {
    expect(options(String.raw`S { ${module} required p="a\tb\\c\"d\101\q"; };`)).toEqual({
      S: [['p', 'a\tb\\c"dAq', 1]],
    })
  })

  it.each([
    ['Server', 1, 'expected { after the name of the section Server, got the end of the file'],
    ['{ }', 1, 'expected the name of a section, got {'],
    ['S {\n M required a="b" }\n;', 2, 'expected an option name="value", or ; after the last one, got }'],
    ['S {\n M required a="b";\n}', 3, 'expected ; after the } of the section S, got the end of the file'],
    ['S {\n M a="b";\n};', 2, 'expected required, requisite, sufficient or optional after the class'],
    ['S { M required a "b"; };', 1, 'expected = after the name of an option, got a text in quotation marks'],
    ['S { M required a=; };', 1, 'expected "value" after =, got ;'],
    ['S { M required\n\n a="b\n"; };', 3, 'expected the closing quotation mark on the same line'],
    ['S { };\nS { };', 2, 'expected each section once, got S again'],
    ['S { M required;\n', 2, 'expected the class of a login module, or } at the end of the section S'],
  ])('reports the line and what was expected: %j', (text, line, problem) => {
    expect(parseJaas(text)).toMatchObject({ line, problem: expect.stringContaining(problem) as string })
  })

  it('never throws, and never includes a value in an error', () => {
    const parts = fc.constantFrom(
      'S',
      '{',
      '}',
      ';',
      '=',
      '"hunter2"',
      'hunter2',
      '"',
      ' ',
      '\n',
      '/*',
      '//',
      '\\',
    )
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 20 }), (some) => {
        const jaas = parseJaas(`S { M required a=${some.join('')}`)
        if ('problem' in jaas) expect(jaas.problem).not.toContain('hunter2')
      }),
      { seed: 5, numRuns: 3000 },
    )
  })
})
