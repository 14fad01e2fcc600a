#include "symbols/names.hpp"

#include <gtest/gtest.h>

namespace forksight::symbols {
namespace {

TEST(Names, LeavesCNamesAlone) {
  EXPECT_EQ(readable_name("cblas_dgemm"), "cblas_dgemm");
  EXPECT_EQ(readable_name(nullptr), "");
  EXPECT_EQ(readable_name(""), "");
  EXPECT_EQ(readable_name("_Zthis is no mangled name"), "_Zthis is no mangled name");
  EXPECT_EQ(readable_name(std::string(1U << 20U, 'x').c_str()), std::string(1U << 14U, 'x'));
}

TEST(Names, DropsSuffixesOfCompilersAndLinkers) {
  EXPECT_EQ(readable_name("compress.constprop.0.isra.0"), "compress");
  EXPECT_EQ(readable_name("fail.cold"), "fail");
  EXPECT_EQ(readable_name("pthread_create@@GLIBC_2.34"), "pthread_create");
  EXPECT_EQ(readable_name("main._omp_fn.0"), "main._omp_fn.0");
  EXPECT_EQ(readable_name("_ZN3app4workEi._omp_fn.1"), "app::work._omp_fn.1");
}

TEST(Names, DropsParametersAndReturnTypes) {
  EXPECT_EQ(simplify_name("app::Cache<int>::get(int) const"), "app::Cache<int>::get");
  EXPECT_EQ(simplify_name("void app::run<int (*)(char)>(int (*)(char))"), "app::run<int (*)(char)>");
  EXPECT_EQ(simplify_name("app::(anonymous namespace)::lock()"), "app::(anonymous namespace)::lock");
  EXPECT_EQ(simplify_name("(anonymous namespace)::mutex"), "(anonymous namespace)::mutex");
  EXPECT_EQ(simplify_name("main::{lambda(int)#1}::operator()(int) const"), "main::{lambda#1}::operator()");
  EXPECT_EQ(simplify_name("main::$_0::operator()(int) const"), "main::{lambda#1}::operator()");
  EXPECT_EQ(simplify_name("void std::run<app::f(int)::{lambda(int (*)(int))#12}>(int)"),
            "std::run<app::f(int)::{lambda#12}>");
  EXPECT_EQ(simplify_name("app::f(int)::{lambda()#2}::operator()() const"), "app::f::{lambda#2}::operator()");
  EXPECT_EQ(simplify_name("app::get() const::instance"), "app::get::instance");
  EXPECT_EQ(simplify_name("guard variable for app::get()::instance"), "guard variable for app::get::instance");
}

TEST(Names, ReadsRustsOlderMangling) {
  EXPECT_EQ(readable_name("_ZN2fn4main17hf053467dfa117807E"), "fn::main");
  EXPECT_EQ(readable_name("_ZN2fn4main28_$u7b$$u7b$closure$u7d$$u7d$17h5e3b1e91b2b0fec4E"), "fn::main::{{closure}}");
  EXPECT_EQ(readable_name("_ZN3std4sync6poison5mutex14Mutex$LT$T$GT$4lock17h08917acc58cd5782E"),
            "std::sync::poison::mutex::Mutex<T>::lock");
}

TEST(Names, KeepsOperators) {
  EXPECT_EQ(simplify_name("app::Box::operator()(int)"), "app::Box::operator()");
  EXPECT_EQ(simplify_name("app::Box::operator<<(int)"), "app::Box::operator<<");
  EXPECT_EQ(simplify_name("app::Box::operator->() const"), "app::Box::operator->");
  EXPECT_EQ(simplify_name("app::Box::operator bool() const"), "app::Box::operator bool");
  EXPECT_EQ(simplify_name("app::Box::operator new[](unsigned long)"), "app::Box::operator new[]");
  EXPECT_EQ(simplify_name("bool operator< <int>(app::Box<int> const&)"), "operator< <int>");
}

TEST(Names, ShortensTheStandardLibrary) {
  EXPECT_EQ(simplify_name("app::open(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >)"),
            "app::open");
  EXPECT_EQ(simplify_name("std::map<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, "
                          "app::Box<int> >::find(int)"),
            "std::map<std::string, app::Box<int>>::find");
}

TEST(Names, SurvivesNonsense) {
  for (const char* text :
       {"(", ")", "((((", "f(", "f)(", "operator", "operator(", "<<<<", ">>>>", "{(}", " [clone ", "a [clone ._omp_fn.",
        "@", "::", "f()::", "{lambda(", "{lambda(()", "$_", "$_99999999999999999999"}) {
    simplify_name(text);
  }
}

}  // namespace
}  // namespace forksight::symbols
