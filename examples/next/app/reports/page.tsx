// For developers, by a rule in menshen.ts. Rendered beforehand: it shows nothing of the user, and the proxy stands before it.
export default function Reports() {
  return <h1>报表</h1>
}
